"""Increments: what one source record adds to each fingerprint that it touches."""

from operator import attrgetter
from typing import Final

from processors.grouper.event_view import EventOutline
from processors.grouper.fingerprinter import MAX_NAME, Found
from processors.grouper.identity import issue_of
from schemas.chunks import ChunkEvent
from schemas.ids import user_hash
from schemas.increments import Increment, Row
from schemas.times import event_time, to_ms

HOUR_MS: Final = 3_600_000
_SHARED: Final = attrgetter("release", "environment", "platform", "hour")


class Increments:
    """The increments of one source record."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], Increment] = {}
        self._users: set[tuple[int, int, int]] = set()
        self._rows: dict[tuple[int, int, str, str, str, int], Row] = {}

    def add(self, carried: ChunkEvent, event: EventOutline, found: Found, value: int) -> None:
        """Count an event under fingerprint `value` (that of `found`, unless another was recorded earlier)."""
        ms = event_time(to_ms(event.timestamp), carried.received_ms)
        project, release = carried.project, event.release[:MAX_NAME]
        total = self._sums.get((project, value))
        if total is None:
            total = self._sums[project, value] = Increment(
                issue=issue_of(project, value),
                project=project,
                fingerprint=value,
                events=1,
                first_ms=ms,
                last_ms=ms,
                received_ms=carried.received_ms,
                last_event=carried.id,
                first_release=release,
                last_release=release,
                rows=[],
                users=[],
                description=found.description,
            )
        else:
            _add(total, ms, release, carried, found)
        self._count(total, release, event, ms // HOUR_MS)
        user = event.user
        if user is not None and user.id:
            key = (project, value, user_hash(project, user.id))
            if key not in self._users:
                self._users.add(key)
                total.users.append(key[2])

    def finish(self) -> list[Increment]:
        """The increments, in the order in which their fingerprints were first met."""
        for total in self._sums.values():
            if total.events > 1:
                total.rows.sort(key=_SHARED)
                total.users.sort()
        return list(self._sums.values())

    def _count(self, total: Increment, release: str, event: EventOutline, hour: int) -> None:
        environment, platform = event.environment[:MAX_NAME], event.platform or ""
        key = (total.project, total.fingerprint, release, environment, platform, hour)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(release, environment, platform, hour, 0)
            total.rows.append(row)
        row.events += 1


def _add(total: Increment, ms: int, release: str, carried: ChunkEvent, found: Found) -> None:
    total.events += 1
    if ms < total.first_ms or (ms == total.first_ms and release < total.first_release):
        total.first_ms, total.first_release = ms, release
    if ms > total.last_ms or (ms == total.last_ms and carried.id > total.last_event):
        total.last_ms, total.last_event, total.received_ms = ms, carried.id, carried.received_ms
        total.last_release, total.description = release, found.description
