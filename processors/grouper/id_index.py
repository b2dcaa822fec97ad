"""Which ids were seen: an index of 16 bytes an id, in sorted runs by day of the log and hour of the uuid.

Days are those of the log's own clock (see `processors.grouper.dedupe`); a whole day is forgotten at once. What was added lately
stands in a set, which is faster to ask and to grow than a sorted array.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from processors.grouper.id_keys import Words, split, words

YOUNG: Final = 65_536
"""Keys that a set holds (about 100 bytes each) before they become sorted runs (16 bytes each)."""
_SHIFT: Final = np.uint64(56)


class Run(NamedTuple):
    """Keys sorted by their high halves."""

    high: Words
    low: Words


class IdIndex:
    """The keys seen by one partition."""

    def __init__(self, young: int = YOUNG) -> None:
        self._limit = young
        self._day = 0
        self._young: set[bytes] = set()
        self._runs: dict[int, dict[int, list[Run]]] = {}
        self._settled: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._young) + sum(self._settled.values())

    @property
    def size(self) -> int:
        """Memory taken, estimated."""
        return 100 * len(self._young) + 16 * (len(self) - len(self._young))

    def new(self, day: int, keys: bytes) -> list[int]:
        """Positions of the joined keys that were not there, each key's first only; they are added under `day`."""
        if day != self._day:
            self._settle()
            self._day = day
        young = self._young
        old = self._find(keys) if self._runs else None
        found = []
        for position, key in enumerate(split(keys)):
            if key not in young and (old is None or not old[position]):
                young.add(key)
                found.append(position)
        if len(young) >= self._limit:
            self._settle()
        return found

    def discard(self, key: bytes) -> None:
        """Forget a key that `new` has just added."""
        if key in self._young:
            self._young.remove(key)
            return
        high, low = words(key)
        bucket = int(high[0] >> _SHIFT)
        for day, buckets in self._runs.items():
            runs = buckets.get(bucket, [])
            for place, run in enumerate(runs):
                keep = (run.high != high[0]) | (run.low != low[0])
                if not keep.all():
                    runs[place] = Run(run.high[keep], run.low[keep])
                    self._settled[day] -= len(run.high) - len(runs[place].high)

    def restore(self, day: int, keys: Iterable[bytes]) -> None:
        """Add joined keys that are known to differ from each other."""
        self._add_run(day, b"".join(keys))

    def forget_before(self, day: int) -> None:
        """Drop all that was added under an earlier day."""
        if self._day < day:
            self._young.clear()
        for old in [d for d in self._runs if d < day]:
            del self._runs[old], self._settled[old]

    def _settle(self) -> None:
        if self._young:
            self._add_run(self._day, b"".join(self._young))
            self._young.clear()

    def _add_run(self, day: int, keys: bytes) -> None:
        high, low = words(keys)
        order = np.argsort(high)
        high, low = high[order], low[order]
        self._settled[day] = self._settled.get(day, 0) + len(high)
        buckets = self._runs.setdefault(day, defaultdict(list))
        for bucket, start, end in _spans(high):
            runs = buckets[bucket]
            # Copies: a slice would keep the whole array alive after the rest has been merged away.
            run = Run(high[start:end].copy(), low[start:end].copy())
            while runs and len(runs[-1].high) <= 2 * len(run.high):
                run = _merged(runs.pop(), run)
            runs.append(run)

    def _find(self, keys: bytes) -> NDArray[np.bool_]:
        high, low = words(keys)
        found = np.zeros(len(high), dtype=np.bool_)
        order = np.argsort(high)
        ordered = high[order]
        for bucket, start, end in _spans(ordered):
            places = order[start:end]
            for buckets in self._runs.values():
                for run in buckets.get(bucket, ()):
                    found[places] |= _in_run(run, high[places], low[places])
        return found


def _spans(high: Words) -> list[tuple[int, int, int]]:
    """(bucket, start, end) of each bucket's keys in sorted high halves."""
    if not len(high):
        return []
    buckets = high >> _SHIFT
    starts = np.flatnonzero(np.diff(buckets, prepend=~buckets[:1])).tolist()
    ends = [*starts[1:], len(high)]
    return [(int(buckets[s]), s, e) for s, e in zip(starts, ends, strict=True)]


def _merged(one: Run, other: Run) -> Run:
    high = np.concatenate((one.high, other.high))
    # Stable sorting is a merge where two sorted runs stand one after the other.
    order = np.argsort(high, kind="stable")
    return Run(high[order], np.concatenate((one.low, other.low))[order])


def _in_run(run: Run, high: Words, low: Words) -> NDArray[np.bool_]:
    left = np.searchsorted(run.high, high)
    at = np.minimum(left, len(run.high) - 1)
    same = run.high[at] == high
    hit = same & (run.low[at] == low)
    # Equal high halves with other low halves: next to impossible, and then looked at one by one.
    for i in np.flatnonzero(same & ~hit):
        right = int(np.searchsorted(run.high, high[i], side="right"))
        hit[i] = bool((run.low[left[i] : right] == low[i]).any())
    return np.asarray(hit, dtype=np.bool_)
