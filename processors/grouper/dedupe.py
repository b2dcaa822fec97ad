"""Dropping repeated ids: the same prefix of the log gives the same decisions, on any worker, after any crash, at any time of day. Pure.

Time is the log's own (`processors.grouper.dedup_log.LogClock`). Ids are indexed by its day, and a day is forgotten as a whole once it is
older than the window: an id is remembered for the window and up to a day longer, and longer still where records are few. An id whose
own day (that of its version-7 uuid) lies ahead of its record's is remembered as if it had arrived on its own day.

So an id that was forgotten is at least a window old by its own time: `old_ids` finds such ids, the caller looks them up where events
are stored, and passes those that are to `decide`.

An id's key is 16 bytes for (project, uuid), with the hour of the version-7 uuid (modulo 256) in the first byte. Equal ids have equal
hours, so a look-up searches only that hour's bucket. Keys are sorted runs in numpy arrays by day and hour; the latest keys are in a
set, which is faster to search and to grow.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from processors.grouper.dedup_log import DAY_MS, KEY_BYTES, DedupEntry, LogClock, advanced, started

BUCKETS: Final = 256
MAX_AHEAD_DAYS: Final = 400
"""Most days for which an id of the future is remembered beyond the window: a device whose clock is a year ahead is still served."""
Words = NDArray[np.uint64]

_HOUR_MS: Final = np.uint64(3_600_000)
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
    hour = (raw[:, 0] >> np.uint64(16)) // _HOUR_MS & np.uint64(BUCKETS - 1)
    high = hour << np.uint64(56) | _mix(raw[:, 0] ^ low) & _LOW_56
    return np.stack((high, low), axis=1).astype(">u8").tobytes()


def days_old(ids: Sequence[bytes], days: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many days each id's own time lies before these days; negative if after, 0 for ids that carry no time."""
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

    @property
    def size(self) -> int:
        """Memory taken, estimated."""
        return 100 * len(self._recent) + 16 * (len(self) - len(self._recent))

    def new(self, day: int, keys: bytes, stored: Collection[bytes] = ()) -> list[int]:
        """Positions of the joined keys that are neither in the index nor `stored`, the first of equal ones; adds them under `day`."""
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
        """Remember joined keys until a future day, and up to `_AHEAD_STEP` days longer, whatever `new` added them under."""
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

    def restore(self, day: int, keys: Iterable[bytes]) -> None:
        """Add joined keys, all distinct."""
        self._add_run(day, b"".join(keys))

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
        high, low = words(keys)
        order = np.argsort(high)
        high, low = high[order], low[order]
        self._sorted[day] = self._sorted.get(day, 0) + len(high)
        buckets = self._runs.setdefault(day, defaultdict(list))
        for bucket, start, end in _spans(high):
            runs = buckets[bucket]
            # Copies: a slice would keep the whole array alive after its other runs have been merged.
            run = Run(high[start:end].copy(), low[start:end].copy())
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
    if not len(high):
        return []
    buckets = high >> _SHIFT
    starts = np.flatnonzero(np.diff(buckets, prepend=~buckets[:1])).tolist()
    ends = [*starts[1:], len(high)]
    return [(int(buckets[s]), s, e) for s, e in zip(starts, ends, strict=True)]


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


class Incoming(NamedTuple):
    """One source record as deduplication sees it: its timestamp and its events' projects and 16-byte ids."""

    offset: int
    timestamp_ms: int
    projects: Sequence[int]
    ids: Sequence[bytes]


class Decision(NamedTuple):
    """The positions of a record that carry ids for the first time, their joined keys, and the log's clock when they were added.

    `watermark_ms` is the greatest record timestamp so far, `ahead` as in `DedupRecord`.
    """

    new: list[int]
    keys: bytes
    watermark_ms: int
    clock: LogClock
    ahead: list[tuple[int, bytes]]


class OldIds(NamedTuple):
    """Ids that are at least a window old: keys that the index has, and projects and ids by key of those that it has not."""

    known: set[bytes]
    unknown: dict[bytes, tuple[int, bytes]]


class Dedupe:
    """The ids of one partition of `events`; `days` is the window."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._index = IdIndex()
        self._clock: LogClock | None = None
        self._watermark_ms = 0

    def __len__(self) -> int:
        return len(self._index)

    @property
    def size(self) -> int:
        """Memory that the index takes, estimated."""
        return self._index.size

    @property
    def oldest_day(self) -> int:
        """The oldest day in the index."""
        return 0 if self._clock is None else self._clock.day - self._days

    def old_ids(self, records: Sequence[Incoming]) -> OldIds:
        """The ids of the next records that the index may have forgotten; it may still forget the known ones within these records."""
        # Timestamps may go back a little. The clock doesn't, and neither may the time that makes ids old.
        stamps = [self._clock.stamped if self._clock else 0, *(r.timestamp_ms // DAY_MS for r in records)]
        young = _day_start(max(stamps) - self._days + 1)
        if all(min(record.ids, default=young) >= young for record in records):
            return OldIds(set(), {})
        ids = [i for record in records for i in record.ids]
        days = np.maximum.accumulate(np.array(stamps, np.int64))[1:]
        old = np.flatnonzero(days_old(ids, _each(records, days)) >= self._days).tolist()
        if not old:
            return OldIds(set(), {})
        projects = [p for record in records for p in record.projects]
        wanted = [(projects[position], ids[position]) for position in old]
        keys = id_keys([p for p, _ in wanted], [i for _, i in wanted])
        known = dict(zip(split(keys), self._index.known(keys), strict=True))
        unknown = {key: pair for key, pair in zip(split(keys), wanted, strict=True) if not known[key]}
        return OldIds({key for key, is_known in known.items() if is_known}, unknown)

    def decide(self, records: Sequence[Incoming], stored: Collection[bytes] = ()) -> list[Decision]:
        """Decisions about consecutive records, in order; their ids count as seen from here on.

        `stored` are keys that count as seen although the index may not have them.
        """
        decisions: list[Decision] = []
        for clock, watermark_ms, run in self._by_day(records):
            self._index.forget_before(clock.day - self._days)
            projects = [p for record in run for p in record.projects]
            ids = [i for record in run for i in record.ids]
            keys = id_keys(projects, ids) if ids else b""
            new = self._index.new(clock.day, keys, stored) if ids else []
            ahead = self._keep_ahead(clock.day, run, ids, keys, new) if new else {}
            decisions += _by_record(run, keys, new, ahead, watermark_ms, clock)
        return decisions

    def _keep_ahead(
        self, day: int, records: Sequence[Incoming], ids: Sequence[bytes], keys: bytes, new: Sequence[int]
    ) -> dict[int, int]:
        """Days by which the own days of new ids lie ahead, by position; the index keeps these ids for as much longer."""
        stamps = [record.timestamp_ms // DAY_MS for record in records]
        if max(ids) < _day_start(min(stamps) + 1):
            return {}
        days = days_old(ids, _each(records, np.array(stamps, np.int64)))
        ahead = {n: min(-int(days[n]), MAX_AHEAD_DAYS) for n in new if days[n] < 0}
        for later, joined in _joined(keys, ahead):
            self._index.keep(day + later, joined)
        return ahead

    def _by_day(self, records: Sequence[Incoming]) -> Iterable[tuple[LogClock, int, list[Incoming]]]:
        """Runs of records of one day of the log, with the clock and the watermark after each run; advances both."""
        group: list[Incoming] = []
        for record in records:
            before = self._clock or started(record.offset, record.timestamp_ms)
            self._clock = advanced(before, record.offset, record.timestamp_ms)
            if group and self._clock.day != before.day:
                yield before, self._watermark_ms, group
                group = []
            self._watermark_ms = max(self._watermark_ms, record.timestamp_ms)
            group.append(record)
        if group and self._clock is not None:
            yield self._clock, self._watermark_ms, group

    def forget(self, key: bytes) -> None:
        """Take back an id that `decide` has just added: its event could not be processed and may be sent again."""
        self._index.discard(key)

    def restore(self, entries: Iterable[DedupEntry]) -> None:
        """Restore ids and clock from recorded entries. Repeating an entry, or part of it, changes nothing."""
        entries = sorted(entries, key=lambda entry: (entry.day, entry.last))
        for entry in entries[-1:]:
            if self._clock is None or entry.day >= self._clock.day:
                self._clock = entry.clock or LogClock(entry.day, entry.day, entry.last + 1)
            self._watermark_ms = max(self._watermark_ms, entry.watermark_ms)
        by_day: dict[int, dict[int, bytes]] = {}
        ahead: dict[int, dict[int, bytes]] = {}
        restored: set[int] = set()
        for entry in entries:
            for record in entry.records:
                for days, keys in record.ahead:
                    if entry.day + days >= self.oldest_day:
                        ahead.setdefault(entry.day + days, {})[record.offset] = keys
                if entry.day >= self.oldest_day and record.keys and record.offset not in restored:
                    restored.add(record.offset)
                    by_day.setdefault(entry.day, {})[record.offset] = record.keys
        for day, found in by_day.items():
            self._index.restore(day, found.values())
        for day, found in ahead.items():
            self._index.keep(day, b"".join(found.values()))


def _day_start(day: int) -> bytes:
    """The first bytes of the least uuid of version 7 of a day: such uuids sort by time."""
    return (max(0, day) * DAY_MS).to_bytes(6, "big")


def _each(records: Sequence[Incoming], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """A value of each record, for each of its ids."""
    return np.repeat(values, [len(record.ids) for record in records])


def _joined(keys: bytes, ahead: Mapping[int, int]) -> list[tuple[int, bytes]]:
    """The joined keys at some positions by the days at these."""
    by_days: dict[int, bytes] = {}
    for position, days in ahead.items():
        key = keys[position * KEY_BYTES : (position + 1) * KEY_BYTES]
        by_days[days] = by_days.get(days, b"") + key
    return sorted(by_days.items())


def _by_record(
    records: Sequence[Incoming],
    keys: bytes,
    new: list[int],
    ahead: Mapping[int, int],
    watermark_ms: int,
    clock: LogClock,
) -> Iterable[Decision]:
    """Split a run's answer by record."""
    index = start = 0
    for record in records:
        end = start + len(record.ids)
        positions = []
        while index < len(new) and new[index] < end:
            positions.append(new[index] - start)
            index += 1
        record_keys = keys[start * KEY_BYTES : end * KEY_BYTES]
        if len(positions) < len(record.ids):
            record_keys = b"".join(record_keys[i * KEY_BYTES : (i + 1) * KEY_BYTES] for i in positions)
        later = _joined(keys, {n: ahead[n] for n in ahead if start <= n < end}) if ahead else []
        yield Decision(positions, record_keys, watermark_ms, clock, later)
        start = end
