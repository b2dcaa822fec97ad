"""The retention of events by day of receipt, from all retentions that their project has had since.

An event expires by the retention at the time of its insert. After a project extends its retention, older
events still expire as before, and are not missing.
"""

from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from schemas.projects import DEFAULT_RETENTION_DAYS
from storage.client import Client

PRESENT: Final = "SELECT project_id, name, retention_days, payload_days FROM projects FINAL WHERE deleted = 0"
PAST: Final = """
    SELECT DISTINCT project_id, day, retention_days, payload_days FROM retentions
    WHERE project_id IN
        (SELECT project_id FROM retentions GROUP BY project_id HAVING uniqExact(retention_days, payload_days) > 1)"""
_MARGIN: Final = timedelta(days=1)
"""Writers learn of a change at different times."""


class RetentionDays(Struct, frozen=True):
    """Retention of events and payloads in days."""

    events: int
    payloads: int


class RetentionHistory(Struct, frozen=True):
    """A project's current retention, and the retentions recorded by day."""

    name: str
    now: RetentionDays
    seen: tuple[tuple[date, RetentionDays], ...] = ()

    def shortest(self, came: date) -> RetentionDays:
        """The shortest retentions that may apply to events received on this day or later."""
        # The last retention recorded before that day applied until the next.
        since = max((day for day, _ in self.seen if day < came - _MARGIN), default=date.min)
        applied = [self.now, *(retention for day, retention in self.seen if day >= since)]
        return RetentionDays(min(days.events for days in applied), min(days.payloads for days in applied))


UNKNOWN: Final = RetentionHistory("", RetentionDays(DEFAULT_RETENTION_DAYS, DEFAULT_RETENTION_DAYS))
"""The retention of an unknown project."""


def read_retention(client: Client) -> dict[int, RetentionHistory]:
    """The retention history of each project. Raises ClickHouseError."""
    past: dict[int, list[tuple[date, RetentionDays]]] = {}
    for project, day, events, payloads in client.query(PAST).result_rows:
        past.setdefault(int(project), []).append((day, RetentionDays(events, payloads)))
    return {
        int(project): RetentionHistory(
            name, RetentionDays(events, payloads), tuple(past.get(int(project), ()))
        )
        for project, name, events, payloads in client.query(PRESENT).result_rows
    }
