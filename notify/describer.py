"""Finds the texts of a message's issues."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final

from notify.issue_tail import IssueTail
from notify.notification_fold import Outgoing
from notify.readable_message import MAX_LISTED, ReadableMessage, written
from schemas.projects import ProjectRegistry
from schemas.read_api import Issue, IssueSource
from schemas.times import DAY_MS
from sourcemaps.resolver import PLATFORMS, Resolver
from storage.errors import ReadError
from storage.read.issues.issue_calls import GetIssue
from storage.read.reader import Reader

log = logging.getLogger(__name__)

SECONDS: Final = 5.0
"""How long a message waits for its texts; then it is sent without."""
_LOOK_SECONDS: Final = 0.1
_AGAIN_SECONDS: Final = 0.25


def clock_ms() -> int:
    """The time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Describer:
    """Writes messages with the texts that issues have now, so that no message shows erased ones."""

    def __init__(
        self,
        tail: IssueTail,
        reader: Reader | None,
        registry: ProjectRegistry,
        dashboard_url: str,
        seconds: float = SECONDS,
        resolver: Resolver | None = None,
    ) -> None:
        self._tail = tail
        self._reader = reader
        self._registry = registry
        self._dashboard_url = dashboard_url
        self._seconds = seconds
        self._resolver = resolver

    async def write(self, outgoing: Outgoing) -> ReadableMessage:
        """The message; without texts of events where they aren't found, or the rule wants none."""
        project = self._registry.get(int(outgoing.project_id))
        name = project.name if project is not None else outgoing.project_id
        if outgoing.decision.is_test:
            return written(outgoing.decision, name, {}, "")
        issues: dict[str, Issue] = {}
        if not outgoing.decision.rule.without_content:
            wanted = list(dict.fromkeys(cause.issue for cause in outgoing.decision.causes[:MAX_LISTED]))
            found = await asyncio.gather(*map(self._described, wanted))
            issues = {number: issue for number, issue in zip(wanted, found, strict=True) if issue is not None}
        sources = await self._sources(int(outgoing.project_id), issues)
        return written(outgoing.decision, name, issues, self._dashboard_url, sources)

    async def _sources(self, project: int, issues: Mapping[str, Issue]) -> dict[str, IssueSource]:
        """The sources that source maps name. An issue's record may arrive before its event."""
        wanted = {number: issue for number, issue in issues.items() if issue.platform in PLATFORMS}
        if self._resolver is None or not wanted or not await self._resolver.has_maps(project):
            return {}
        end = time.monotonic() + self._seconds
        while True:
            found = await self._resolver.sources(project, wanted.values(), self._seconds)
            if len(found) == len(wanted) or time.monotonic() > end:
                return {number: found[issue.id] for number, issue in wanted.items() if issue.id in found}
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _described(self, number: str) -> Issue | None:
        """The issue by its record, which arrives with its cause, or by ClickHouse where that is sooner."""
        if (issue := self._tail.find(number, clock_ms())) is not None:
            return issue
        reading = asyncio.create_task(self._stored(number))
        try:
            while not (await asyncio.wait([reading], timeout=_LOOK_SECONDS))[0]:
                if (issue := self._tail.find(number, clock_ms())) is not None:
                    return issue
            return reading.result()
        finally:
            reading.cancel()

    async def _stored(self, number: str) -> Issue | None:
        """The issue, once ClickHouse has it."""
        error: ReadError | None = None
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    if self._reader is not None:
                        try:
                            return await self._reader.read(GetIssue(number, start=clock_ms() - DAY_MS))
                        except ReadError as failed:
                            error = failed
                    await asyncio.sleep(_AGAIN_SECONDS)
        except TimeoutError:
            log.info(
                "found no texts of issue %s, sending its message without: %r",
                number,
                error,
                extra={"event": "issue_details_read_failed"},
            )
            return None
