"""Increments: what one source record adds to each fingerprint that it touches."""

from typing import Final
from uuid import UUID

from processors.fingerprint import Fingerprint, culprit
from processors.forms import EventForm
from schemas.chunks import ChunkEvent
from schemas.ids import user_hash
from schemas.issues import Increment
from schemas.times import event_time, to_ms

HOUR_MS: Final = 3_600_000
MAX_TEXT: Final = 1000
"""Characters of a message that an issue keeps."""
MAX_NAME: Final = 200
"""Characters of a type, release, environment, culprit or grouping part that an issue keeps."""
MAX_PARTS: Final = 32


class _Sum:
    """A growing increment: lists are cheaper to grow than structs to replace."""

    __slots__ = (
        "environments",
        "events",
        "fingerprint",
        "first_ms",
        "first_release",
        "hours",
        "last_ms",
        "newest",
        "platforms",
        "releases",
        "users",
    )

    def __init__(self) -> None:
        self.events = 0
        self.first_ms = self.last_ms = 0
        self.first_release = ""
        self.releases: dict[str, int] = {}
        self.environments: dict[str, int] = {}
        self.platforms: dict[str, int] = {}
        self.hours: dict[int, int] = {}
        self.users: set[int] = set()
        self.newest: tuple[int, bytes, ChunkEvent, EventForm] | None = None
        self.fingerprint: Fingerprint | None = None


class Increments:
    """The increments of one source record."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], _Sum] = {}

    def add(self, carried: ChunkEvent, event: EventForm, found: Fingerprint, value: int) -> None:
        """Count an event under fingerprint `value` (that of `found`, unless another was recorded earlier)."""
        key = (carried.project, value)
        total = self._sums.get(key)
        if total is None:
            total = self._sums[key] = _Sum()
        ms = event_time(to_ms(event.timestamp), carried.received_ms)
        release = event.release[:MAX_NAME]
        if not total.events or (ms, release) < (total.first_ms, total.first_release):
            total.first_ms, total.first_release = ms, release
        if total.newest is None or (ms, carried.id) > total.newest[:2]:
            total.last_ms, total.newest, total.fingerprint = ms, (ms, carried.id, carried, event), found
        total.events += 1
        _count(total.releases, release)
        _count(total.environments, event.environment[:MAX_NAME])
        _count(total.platforms, event.platform or "")
        hour = ms // HOUR_MS
        total.hours[hour] = total.hours.get(hour, 0) + 1
        if event.user is not None and event.user.id:
            total.users.add(user_hash(carried.project, event.user.id))

    def finish(self) -> list[Increment]:
        """The increments, in the order in which their fingerprints were first met."""
        return [_increment(project, value, total) for (project, value), total in self._sums.items()]


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _increment(project: int, value: int, total: _Sum) -> Increment:
    newest, found = total.newest, total.fingerprint
    assert newest is not None
    assert found is not None
    _, _, carried, event = newest
    return Increment(
        project=project,
        fingerprint=value,
        events=total.events,
        first_ms=total.first_ms,
        last_ms=total.last_ms,
        releases=total.releases,
        environments=total.environments,
        platforms=total.platforms,
        hours=total.hours,
        users=sorted(total.users),
        error_type=(event.error.type or "")[:MAX_NAME],
        message=(event.error.message or "")[:MAX_TEXT],
        culprit=culprit(event)[:MAX_NAME],
        last_event=str(UUID(bytes=carried.id)),
        received_ms=carried.received_ms,
        version=found.version,
        rule=found.rule,
        parts=tuple(part[:MAX_NAME] for part in found.parts[:MAX_PARTS]),
        first_release=total.first_release,
        last_release=event.release[:MAX_NAME],
    )
