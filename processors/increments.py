"""Increments: what one source record adds to each fingerprint that it touches."""

from typing import Final

from grouping.fingerprint import Fingerprint, culprit
from processors.forms import EventForm, id_text
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
CULPRITS: Final = 20_000
_culprits: dict[int, str] = {}
"""Looked for again, they would cost a fifth of all processing; a look at the stack is what takes time."""


class _Sum:
    """A growing increment, begun by its first event: lists are cheaper to grow than structs to replace."""

    __slots__ = (
        "environments",
        "events",
        "first_ms",
        "first_release",
        "found",
        "hours",
        "last_ms",
        "newest",
        "newest_event",
        "platforms",
        "releases",
        "users",
    )

    def __init__(self, ms: int, carried: ChunkEvent, event: EventForm, found: Fingerprint) -> None:
        release = event.release[:MAX_NAME]
        self.events = 1
        self.first_ms = self.last_ms = ms
        self.first_release = release
        self.releases = {release: 1}
        self.environments = {event.environment[:MAX_NAME]: 1}
        self.platforms = {event.platform or "": 1}
        self.hours = {ms // HOUR_MS: 1}
        self.users: set[int] = set()
        self.newest, self.newest_event, self.found = carried, event, found

    def add(self, ms: int, carried: ChunkEvent, event: EventForm, found: Fingerprint) -> None:
        """Count another event."""
        release = event.release[:MAX_NAME]
        self.first_ms, self.first_release = min((self.first_ms, self.first_release), (ms, release))
        if (ms, carried.id) > (self.last_ms, self.newest.id):
            self.last_ms, self.newest, self.newest_event, self.found = ms, carried, event, found
        self.events += 1
        for counts, name in (
            (self.releases, release),
            (self.environments, event.environment[:MAX_NAME]),
            (self.platforms, event.platform or ""),
        ):
            counts[name] = counts.get(name, 0) + 1
        hour = ms // HOUR_MS
        self.hours[hour] = self.hours.get(hour, 0) + 1

    def finish(self, project: int, value: int) -> Increment:
        """The increment."""
        carried, event, found = self.newest, self.newest_event, self.found
        return Increment(
            project=project,
            fingerprint=value,
            events=self.events,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            releases=self.releases,
            environments=self.environments,
            platforms=self.platforms,
            hours=self.hours,
            users=sorted(self.users),
            error_type=(event.error.type or "")[:MAX_NAME],
            message=(event.error.message or "")[:MAX_TEXT],
            culprit=_culprit(event, value, found),
            last_event=id_text(carried.id),
            received_ms=carried.received_ms,
            version=found.version,
            rule=found.rule,
            parts=tuple([part[:MAX_NAME] for part in found.parts[:MAX_PARTS]]),
            first_release=self.first_release,
            last_release=event.release[:MAX_NAME],
        )


class Increments:
    """The increments of one source record."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], _Sum] = {}

    def add(self, carried: ChunkEvent, event: EventForm, found: Fingerprint, value: int) -> None:
        """Count an event under fingerprint `value` (that of `found`, unless another was recorded earlier)."""
        ms = event_time(to_ms(event.timestamp), carried.received_ms)
        key = (carried.project, value)
        total = self._sums.get(key)
        if total is None:
            total = self._sums[key] = _Sum(ms, carried, event, found)
        else:
            total.add(ms, carried, event, found)
        user = event.user
        if user is not None and user.id:
            total.users.add(user_hash(carried.project, user.id))

    def finish(self) -> list[Increment]:
        """The increments, in the order in which their fingerprints were first met."""
        return [total.finish(project, value) for (project, value), total in self._sums.items()]


def _culprit(event: EventForm, value: int, found: Fingerprint) -> str:
    """The culprit. Where the stack decided, its place is among the parts: equal fingerprints have equal ones."""
    if found.rule != "stack":
        return culprit(event)[:MAX_NAME]
    known = _culprits.get(value)
    if known is None:
        if len(_culprits) >= CULPRITS:
            _culprits.clear()
        known = _culprits[value] = culprit(event)[:MAX_NAME]
    return known
