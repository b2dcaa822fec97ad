"""Judges whether accepted, stored and counted events agree while the pipeline runs. Pure.

Two readings are compared. Between them every consumer passed the ends that its topics had after the first. So
the second reading has stored everything that the first has accepted, and has accepted everything that the
first has stored. Events on their way are in neither difference, however far a stage is behind and whatever
any clock says.
"""

from collections.abc import Iterable, Set
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

HOUR: Final = 3600
_TIME_BITS: Final = np.uint64(32)
_TIME_MASK: Final = np.uint64(0xFFFF_FFFF)
Kind = Literal["missing", "surplus"]


class EventCounts:
    """Numbers of events by project and Unix time of a minute or hour, as sorted arrays."""

    def __init__(
        self, projects: Iterable[int] = (), times: Iterable[int] = (), numbers: Iterable[int] = ()
    ) -> None:
        keys = (np.asarray(projects, np.uint64) << _TIME_BITS) | np.asarray(times, np.uint64)
        self._keys, self._numbers = _summed(keys, np.asarray(numbers, np.int64))

    @classmethod
    def total(cls, counts: Iterable["EventCounts"]) -> "EventCounts":
        parts = list(counts)
        if not parts:
            return cls()
        return cls._of(
            np.concatenate([part._keys for part in parts]), np.concatenate([part._numbers for part in parts])
        )

    @classmethod
    def _of(cls, keys: NDArray[np.uint64], numbers: NDArray[np.int64]) -> "EventCounts":
        result = cls()
        result._keys, result._numbers = _summed(keys, numbers)
        return result

    def __len__(self) -> int:
        return len(self._keys)

    def __sub__(self, other: "EventCounts") -> "EventCounts":
        return self._of(
            np.concatenate([self._keys, other._keys]), np.concatenate([self._numbers, -other._numbers])
        )

    def between(self, since: int, until: int) -> "EventCounts":
        """The counts of times from `since` on and before `until`."""
        times = self._keys & _TIME_MASK
        wanted = (times >= np.uint64(since)) & (times < np.uint64(until))
        return self._of(self._keys[wanted], self._numbers[wanted])

    def without(self, times: Set[int], hours: Set[int]) -> "EventCounts":
        """The counts of all other times and hours."""
        own = self._keys & _TIME_MASK
        left = ~(_among(own, times) | _among(own - own % np.uint64(HOUR), hours))
        return self._of(self._keys[left], self._numbers[left])

    def by_hour(self) -> "EventCounts":
        return self._of(self._keys - (self._keys & _TIME_MASK) % np.uint64(HOUR), self._numbers)

    def positive(self) -> dict[tuple[int, int], int]:
        """Numbers above zero by project and time."""
        wanted = self._numbers > 0
        return {
            (key >> 32, key & 0xFFFF_FFFF): number
            for key, number in zip(self._keys[wanted].tolist(), self._numbers[wanted].tolist(), strict=True)
        }


class AuditReading(Struct, frozen=True):
    """Counts of one moment.

    `accepted`, `ended` (duplicates and dead letters) and `stored` are by time of receipt, the others by
    event's time.
    """

    accepted: EventCounts
    ended: EventCounts
    stored: EventCounts
    events: EventCounts
    tables: dict[str, EventCounts]


class AuditDifference(Struct, frozen=True):
    """The least number of events missing or surplus in a table, `what`, by project and hour (Unix time)."""

    project: int
    hour: int
    what: str
    kind: Kind
    events: int

    @property
    def key(self) -> tuple[int, int, str, Kind]:
        """All but the number."""
        return self.project, self.hour, self.what, self.kind


def find_differences(
    first: AuditReading,
    second: AuditReading,
    since: int,
    until: int,
    skipped: Set[int] = frozenset(),
    expiring: Set[int] = frozenset(),
) -> list[AuditDifference]:
    """The differences in the hours from `since` on; of times of receipt only those before `until`.

    Projects in `skipped` are not judged. Those in `expiring` may store fewer events by time of receipt than
    they accepted.
    """
    a, b = (
        AuditReading(
            reading.accepted.between(since, until).by_hour(),
            reading.ended.between(since, until).by_hour(),
            reading.stored.between(since, until).by_hour(),
            reading.events.between(since, 1 << 32),
            {name: counts.between(since, 1 << 32) for name, counts in reading.tables.items()},
        )
        for reading in (first, second)
    )
    pairs = [
        ("stored", "missing", a.accepted - b.ended - b.stored),
        ("stored", "surplus", a.stored - (b.accepted - a.ended)),
    ]
    for name in a.tables:
        pairs += [
            (name, "missing", a.events - b.tables[name]),
            (name, "surplus", a.tables[name] - b.events),
        ]
    return [
        AuditDifference(project, hour, what, kind, events)  # type: ignore[arg-type]
        for what, kind, difference in pairs
        for (project, hour), events in difference.positive().items()
        if project not in skipped and not (project in expiring and (what, kind) == ("stored", "missing"))
    ]


class ConfirmedDifferences:
    """Differences that two audits in a row have found: a repair or a command in between shows in one only."""

    def __init__(self) -> None:
        self._last: frozenset[tuple[int, int, str, Kind]] = frozenset()

    def confirm(self, differences: Iterable[AuditDifference]) -> list[AuditDifference]:
        """The differences of this audit that the last one had too."""
        found = list(differences)
        confirmed = [difference for difference in found if difference.key in self._last]
        self._last = frozenset(difference.key for difference in found)
        return confirmed


def _summed(
    keys: NDArray[np.uint64], numbers: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    unique, where = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, where, numbers)
    return unique, sums


def _among(values: NDArray[np.uint64], wanted: Set[int]) -> NDArray[np.bool_]:
    return np.isin(values, np.fromiter(wanted, np.uint64, len(wanted)))
