"""Finds the texts of a message's issues."""

import asyncio
import logging
import time
from typing import Final

from notify.notification_fold import Outgoing
from notify.readable_message import MAX_LISTED, ReadableMessage, written
from schemas.projects import ProjectRegistry
from schemas.read_api import Issue
from schemas.times import DAY_MS
from storage.errors import NotFound, ReadError
from storage.read.issues.issue_calls import GetIssue
from storage.read.reader import Reader

log = logging.getLogger(__name__)

_SECONDS: Final = 5.0
"""How long a message waits for its texts; then it is sent without. A new issue is stored a second after its cause."""
_AGAIN_SECONDS: Final = 0.25


def clock_ms() -> int:
    """The time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Describer:
    """Writes messages with the texts that ClickHouse has now, so that no message shows erased ones."""

    def __init__(self, reader: Reader | None, registry: ProjectRegistry, dashboard_url: str) -> None:
        self._reader = reader
        self._registry = registry
        self._dashboard_url = dashboard_url

    async def write(self, outgoing: Outgoing) -> ReadableMessage:
        """The message; without texts of events where ClickHouse doesn't answer, or the rule wants none."""
        project = self._registry.get(int(outgoing.project_id))
        name = project.name if project is not None else outgoing.project_id
        issues: dict[str, Issue] = {}
        if self._reader is not None and not outgoing.decision.rule.without_content:
            wanted = list(dict.fromkeys(cause.issue for cause in outgoing.decision.causes[:MAX_LISTED]))
            found = await asyncio.gather(*(self._stored(self._reader, issue) for issue in wanted))
            issues = {number: issue for number, issue in zip(wanted, found, strict=True) if issue is not None}
        return written(outgoing.decision, name, issues, self._dashboard_url)

    async def _stored(self, reader: Reader, number: str) -> Issue | None:
        """The issue, once ClickHouse has it."""
        try:
            async with asyncio.timeout(_SECONDS):
                while True:
                    try:
                        return await reader.read(GetIssue(number, start=clock_ms() - DAY_MS))
                    except NotFound:
                        await asyncio.sleep(_AGAIN_SECONDS)
        except (ReadError, TimeoutError) as error:
            log.info(
                "can't read issue %s, sending its message without details: %r",
                *(number, error),
                extra={"event": "issue_details_read_failed"},
            )
            return None
