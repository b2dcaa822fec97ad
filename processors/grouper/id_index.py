"""The keys of ids, and the index of those seen in one partition. Pure.

An id's key is 16 bytes for (project, uuid), with the hour of the version-7 uuid (modulo 256) in the first
byte. Equal ids have equal hours, so a look-up searches only that hour's bucket. Keys are sorted runs in numpy
arrays by day and hour. The latest keys are in a set, which is faster to search and to grow.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from processors.grouper.dedup_log import KEY_BYTES
from schemas.times import DAY_MS, HOUR_MS

BUCKETS: Final = 256
Words = NDArray[np.uint64]

_LOW_56: Final = np.uint64((1 << 56) - 1)
_VERSION_7: Final = np.uint64(7)


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64: a bijection of 64 bits, so no two words become one."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def id_keys(projects: Sequence[int], ids: Sequence[bytes]) -> bytes:
    """The keys of (project, 16-byte uuid) pairs, joined.

    Within a project two ids share a key only where their 62 random bits, their hour (modulo 256) and 56 mixed bits of
    their first half are all equal; an id of another project must equal it in 118 bits.
    """
    raw = np.frombuffer(b"".join(ids), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    low = _mix(raw[:, 1] ^ _mix(np.array(projects, dtype=np.uint64)))
    hour = (raw[:, 0] >> np.uint64(16)) // np.uint64(HOUR_MS) & np.uint64(BUCKETS - 1)
    high = hour << np.uint64(56) | _mix(raw[:, 0] ^ low) & _LOW_56
    return np.stack((high, low), axis=1).astype(">u8").tobytes()


def days_old(ids: Sequence[bytes], days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days from each id's own time to these days; negative if it is later, 0 for ids without a time."""
    first = np.frombuffer(b"".join(ids), dtype=">u8").reshape(-1, 2)[:, 0].astype(np.uint64)
    own = ((first >> np.uint64(16)) // np.uint64(DAY_MS)).astype(np.int64)
    return np.where(first >> np.uint64(12) & np.uint64(15) == _VERSION_7, days - own, 0)


def split(keys: bytes) -> list[bytes]:
    """The single keys of joined keys."""
    return [keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES)]


def words(keys: bytes) -> tuple[Words, Words]:
    """High and low halves of joined keys; the bucket is the high half's first byte."""
    raw = np.frombuffer(keys, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(raw[:, 0]), np.ascontiguousarray(raw[:, 1])


RECENT_KEYS: Final = 65_536
"""Keys that the set holds (about 100 bytes each) before they become sorted runs (16 bytes each)."""
_SHIFT: Final = np.uint64(56)
_FIRST_OF_BUCKET: Final = np.arange(BUCKETS, dtype=np.uint64) << _SHIFT
_AHEAD_STEP: Final = 16
"""Future days that share their runs: a look-up searches the runs of every day."""


class Run(NamedTuple):
    """Keys sorted by their high halves."""

    high: Words
    low: Words


class IdIndex:
    """The keys seen in one partition."""

    def __init__(self, limit: int = RECENT_KEYS) -> None:
        self._limit = limit
        self._day = 0
        self._recent: set[bytes] = set()
        self._runs: dict[int, dict[int, list[Run]]] = {}
        self._sorted: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._recent) + sum(self._sorted.values())

    def new(self, day: int, keys: bytes, stored: Collection[bytes] = ()) -> list[int]:
        """Positions of the joined keys that are neither in the index nor `stored`, the first of equal ones.

        Adds these keys under `day`.
        """
        if day != self._day:
            self._flush_recent()
            self._day = day
        recent = self._recent
        old = self._find(keys) if self._runs else None
        if stored:
            also = np.fromiter((key in stored for key in split(keys)), np.bool_)
            old = also if old is None else old | also
        added = []
        for position, key in enumerate(split(keys)):
            if key not in recent and (old is None or not old[position]):
                recent.add(key)
                added.append(position)
        if len(recent) >= self._limit:
            self._flush_recent()
        return added

    def known(self, keys: bytes) -> list[bool]:
        """Whether each of the joined keys is in the index."""
        found = self._find(keys)
        return [bool(found[n]) or key in self._recent for n, key in enumerate(split(keys))]

    def keep(self, day: int, keys: bytes) -> None:
        """Remember joined keys until a future day, and up to `_AHEAD_STEP` days longer.

        The day under which `new` added them doesn't matter.
        """
        self._add_run(day + -day % _AHEAD_STEP, keys)

    def discard(self, key: bytes) -> None:
        """Forget a key that `new` has just added."""
        self._recent.discard(key)
        high, low = words(key)
        bucket = int(high[0] >> _SHIFT)
        for day, buckets in self._runs.items():
            left = []
            for run in buckets.pop(bucket, ()):
                keep = (run.high != high[0]) | (run.low != low[0])
                self._sorted[day] -= int((~keep).sum())
                if keep.any():
                    left.append(Run(run.high[keep], run.low[keep]))
            if left:
                buckets[bucket] = left

    def restore(self, day: int, keys: bytes) -> None:
        """Add joined keys; some may be repeated."""
        self._add_run(day, keys)

    def put(self, day: int, runs: Mapping[int, Run]) -> None:
        """Add runs by bucket without merging them: it takes no time, but look-ups search one run more."""
        self._sorted[day] = self._sorted.get(day, 0) + sum(len(run.high) for run in runs.values())
        buckets = self._runs.setdefault(day, defaultdict(list))
        for bucket, run in runs.items():
            buckets[bucket].append(run)

    def forget_before(self, day: int) -> None:
        """Drop all that was added under an earlier day."""
        if self._day < day:
            self._recent.clear()
        for old in [d for d in self._runs if d < day]:
            del self._runs[old], self._sorted[old]

    def _flush_recent(self) -> None:
        if self._recent:
            self._add_run(self._day, b"".join(self._recent))
            self._recent.clear()

    def _add_run(self, day: int, keys: bytes) -> None:
        added = sorted_runs(keys)
        self._sorted[day] = self._sorted.get(day, 0) + sum(len(run.high) for run in added.values())
        buckets = self._runs.setdefault(day, defaultdict(list))
        for bucket, new in added.items():
            runs, run = buckets[bucket], new
            while runs and len(runs[-1].high) <= 2 * len(run.high):
                run = _merged(runs.pop(), run)
            runs.append(run)

    def _find(self, keys: bytes) -> NDArray[np.bool_]:
        high, low = words(keys)
        seen = np.zeros(len(high), dtype=np.bool_)
        order = np.argsort(high)
        ordered = high[order]
        for bucket, start, end in _spans(ordered):
            positions = order[start:end]
            for buckets in self._runs.values():
                for run in buckets.get(bucket, ()):
                    seen[positions] |= _in_run(run, high[positions], low[positions])
        return seen


def _spans(high: Words) -> list[tuple[int, int, int]]:
    """(bucket, start, end) of each bucket's keys in sorted high halves."""
    starts = np.searchsorted(high, _FIRST_OF_BUCKET).tolist()
    return [(b, s, e) for b, (s, e) in enumerate(pairwise([*starts, len(high)])) if s < e]


def sorted_runs(keys: bytes) -> dict[int, Run]:
    """Joined keys as a run of each bucket."""
    high, low = _sorted_words(keys)
    spans = _spans(high)
    if len(spans) == 1:
        return {spans[0][0]: Run(high, low)}
    # Copies: a slice would keep the whole array alive after its other runs have been merged.
    return {b: Run(high[start:end].copy(), low[start:end].copy()) for b, start, end in spans}


def _sorted_words(keys: bytes) -> tuple[Words, Words]:
    """The halves of joined keys, sorted by the high ones, each key once.

    `argsort` would take several times longer than a sort of words. So the lowest bits of each word are its
    position, and the few keys whose other bits are equal are put in order afterwards.
    """
    raw = np.frombuffer(keys, dtype=">u8").reshape(-1, 2)
    mask = (np.uint64(1) << np.uint64(len(raw).bit_length())) - np.uint64(1)
    packed = raw[:, 0].astype(np.uint64)
    packed &= ~mask
    packed |= np.arange(len(raw), dtype=np.uint64)
    packed.sort()
    packed &= mask
    ordered = raw.take(packed.view(np.intp), axis=0)
    high, low = ordered[:, 0].astype(np.uint64), ordered[:, 1].astype(np.uint64)
    close = np.flatnonzero(high[1:] ^ high[:-1] <= mask)
    if len(close):
        near = np.union1d(close, close + 1)
        near_high, near_low = high[near], low[near]
        order = np.lexsort((near_low, near_high))
        high[near], low[near] = near_high[order], near_low[order]
        repeated = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
        high, low = np.delete(high, repeated), np.delete(low, repeated)
    return high, low


def _merged(left: Run, right: Run) -> Run:
    high = np.concatenate((left.high, right.high))
    # Stable sorting of two concatenated sorted runs is a merge.
    order = np.argsort(high, kind="stable")
    return Run(high[order], np.concatenate((left.low, right.low))[order])


def _in_run(run: Run, high: Words, low: Words) -> NDArray[np.bool_]:
    left = np.searchsorted(run.high, high)
    at = np.minimum(left, len(run.high) - 1)
    same = run.high[at] == high
    hit = same & (run.low[at] == low)
    # Equal high halves with different low halves are next to impossible: compare them one at a time.
    for i in np.flatnonzero(same & ~hit):
        right = int(np.searchsorted(run.high, high[i], side="right"))
        hit[i] = bool((run.low[left[i] : right] == low[i]).any())
    return np.asarray(hit, dtype=np.bool_)
