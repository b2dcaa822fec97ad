"""For how long what came on a day is kept: by the retentions that its project has had since, not by today's alone.

An event is kept for the retention at the time it was written. So a project that keeps longer from today on has still dropped what came
before, and nothing of it is missing.
"""

from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from schemas.projects import DEFAULT_RETENTION_DAYS
from storage.client import Client

_PRESENT: Final = (
    "SELECT project_id, name, retention_days, payload_days FROM projects FINAL WHERE deleted = 0"
)
_PAST: Final = """
    SELECT DISTINCT project_id, day, retention_days, payload_days FROM retentions
    WHERE project_id IN
        (SELECT project_id FROM retentions GROUP BY project_id HAVING uniqExact(retention_days, payload_days) > 1)"""
_MARGIN: Final = timedelta(days=1)
"""One writer has written down a change when another hasn't heard of it."""


class RetentionDays(Struct, frozen=True):
    """Days for which events and payloads are kept."""

    events: int
    payloads: int


class RetentionHistory(Struct, frozen=True):
    """A project's retention now, and what was seen of it on which days."""

    name: str
    now: RetentionDays
    seen: tuple[tuple[date, RetentionDays], ...] = ()

    def least(self, came: date) -> RetentionDays:
        """The shortest retentions that may have held for what came on this day or later."""
        # What was seen last before that day held on, until the next was seen.
        since = max((day for day, _ in self.seen if day < came - _MARGIN), default=date.min)
        held = [self.now, *(retention for day, retention in self.seen if day >= since)]
        return RetentionDays(min(one.events for one in held), min(one.payloads for one in held))


UNKNOWN: Final = RetentionHistory("", RetentionDays(DEFAULT_RETENTION_DAYS, DEFAULT_RETENTION_DAYS))
"""A project that isn't known."""


def read_retention(client: Client) -> dict[int, RetentionHistory]:
    """What each project keeps and kept. Raises ClickHouseError."""
    past: dict[int, list[tuple[date, RetentionDays]]] = {}
    for project, day, events, payloads in client.query(_PAST).result_rows:
        past.setdefault(int(project), []).append((day, RetentionDays(events, payloads)))
    return {
        int(project): RetentionHistory(
            name, RetentionDays(events, payloads), tuple(past.get(int(project), ()))
        )
        for project, name, events, payloads in client.query(_PRESENT).result_rows
    }
