"""A worker of the edge as a whole, with no Kafka to speak to: how it ends when one of its parts fails."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from edge.address import new_listener
from edge.edge_process import EdgeProcess
from local.ports import free_port
from schemas.projects import Project
from schemas.settings import EdgeSettings


@pytest.fixture
async def worker(tmp_path: Path) -> EdgeProcess:
    folder = tmp_path / "edge"
    folder.mkdir()
    project = Project(id="1", name="shop", created_at="2026-01-01T00:00:00.000Z")
    (folder / "projects.json").write_bytes(msgspec.json.encode([project]))
    settings = EdgeSettings(
        data_dir=str(tmp_path), kafka_bootstrap=f"127.0.0.1:{free_port()}", edge_drain_seconds=0.001
    )
    made = EdgeProcess(settings, new_listener("127.0.0.1", 0, shared=True))
    await made.start()
    return made


async def refuse() -> None:
    raise RuntimeError("this part is broken")


@pytest.mark.parametrize("part", ["_chunker", "_outcomes", "_sink", "_limiter"])
async def test_stopping_goes_on_after_a_step_that_fails(
    worker: EdgeProcess,
    part: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker._outcomes.count("1", "a/1", "invalid", "schema")
    owner = getattr(worker, part)
    name = next(name for name in ("stop", "close") if hasattr(owner, name))
    whole = getattr(owner, name)
    monkeypatch.setattr(owner, name, refuse)
    await worker.stop()
    assert worker.failed
    assert "this part is broken" in caplog.text
    assert part == "_outcomes" or list((tmp_path / "edge" / "spool").glob("*/outcomes.json"))
    # The folder is free again: another worker may have it.
    second = EdgeProcess(worker._settings, new_listener("127.0.0.1", 0, shared=True))
    await second.start()
    assert second._folder.number == worker._folder.number
    await second.stop()
    assert not second.failed
    await whole()
    await asyncio.sleep(0)
