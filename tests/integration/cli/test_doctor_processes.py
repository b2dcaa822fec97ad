"""Findings of doctor about a writer that was never started, that runs, that is frozen and that has ended."""

import asyncio

import pytest

from cli.doctor import process_check
from cli.doctor.basic_checks import Finding
from cli.doctor.process_check import check_processes, expected
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, Writer, ended, exactly, whole


async def doctor(stage: Stage, writer: Writer | None = None) -> list[Finding]:
    """Its findings about the writer."""
    environ = stage.environ | ({"SVC_WRITER_HEALTH_PORT": str(writer.port)} if writer else {})
    settings = load(MigrateSettings, environ)
    [wanted] = [one for one in expected(environ, settings) if one.name == "writer"]
    return await asyncio.to_thread(check_processes, settings, [wanted], seconds=1.0)


async def test_a_stopped_or_frozen_writer_is_found(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_check, "ANSWER_SECONDS", 60.0)
    group = stage.settings.writer_group
    found = await doctor(stage)
    assert [one.message for one in found if one.ok] == [
        f"nothing has been in the group {group} yet",
        f"nothing has been in the group {group}-records yet",
    ], found
    await stage.produce(3, repeat=0)
    first, _ = await doctor(stage)
    assert (first.ok, first.message) == (False, f"no process is in the group {group}, 3 records wait")
    assert "`svc writer`" in first.fix

    writer = stage.writer()
    with ended(writer):
        assert await whole(stage) == exactly(stage.total)
        await eventually(lambda: writer.get("readyz")[0] == 200)
        assert [one.message for one in await doctor(stage, writer) if one.ok] == [
            f"1 in the group {group}",
            f"1 in the group {group}-records",
            f"http://127.0.0.1:{writer.port} is ready",
        ]
        writer.freeze()
        monkeypatch.setattr(process_check, "ANSWER_SECONDS", 1.0)
        await stage.produce(1, repeat=0)
        wrong = [one.message for one in await doctor(stage, writer) if not one.ok]
        assert f"http://127.0.0.1:{writer.port} takes connections and doesn't answer" in wrong
        assert any(f"handles none of the 1 records that wait in {stage.topic}/" in one for one in wrong)

    async def noticed() -> bool:
        first, *_ = await doctor(stage, writer)
        return first.message == f"no process is in the group {group}, 1 records wait" and not first.ok

    await eventually(noticed)
