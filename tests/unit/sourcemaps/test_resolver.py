"""Maps that take longer than a page waits are read once, for all who ask meanwhile and for the next call."""

import asyncio
from typing import Any

import msgspec
import pytest

from schemas.read_api import ArtifactLink, EventDetail
from sourcemaps import resolver
from storage.read.artifacts import HasArtifacts
from tests.builds import VITE
from tests.eventually import eventually


class SlowReader:
    """Has maps, of which it tells when `may_answer` is set."""

    def __init__(self) -> None:
        self.reads = 0
        self.may_answer = asyncio.Event()

    async def read(self, call: Any) -> bool | list[ArtifactLink]:
        if isinstance(call, HasArtifacts):
            return True
        self.reads += 1
        await self.may_answer.wait()
        return []


async def test_what_came_too_late_is_there_for_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "PAGE_SECONDS", 0)
    reader: Any = SlowReader()
    resolving = resolver.Resolver(reader)
    grouping: Any = None
    detail = EventDetail(
        event=msgspec.Raw(msgspec.json.encode(VITE[0].event(1, 1_760_000_000_000))),
        event_id="e",
        project_id="1",
        issue_id="i",
        fingerprint="f",
        time="",
        received_at="",
        sdk="",
        previous_event_id=None,
        next_event_id=None,
        grouping=grouping,
    )

    async def problem() -> str:
        resolved = (await resolving.with_source(detail)).resolved
        assert resolved is not None
        return resolved.problems[0]

    for _ in range(3):
        assert "still being read" in await problem()
    reader.may_answer.set()

    async def is_there() -> bool:
        return "has no source map" in await problem()

    await eventually(is_there)
    assert reader.reads == 1
    await resolving.close()
