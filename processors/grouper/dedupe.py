"""Dropping repeated ids. Pure.

The same prefix of the log gives the same decisions, on any worker, after any crash, at any time of day.

Time is the log's own (`processors.grouper.log_clock.LogClock`). Ids are indexed by its day, and a day is
forgotten as a whole once it is older than the window: an id is remembered for the window and up to a day
longer, and longer still where records are few. An id whose own day (that of its version-7 uuid) is ahead of
its record's is remembered as if it had arrived on its own day.

So a forgotten id is at least a window old by its own time. `old_ids` finds such ids; the caller looks them up
where events are stored, and passes the stored ones to `decide`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from processors.grouper.dedup_log import KEY_BYTES, DedupEntry, EntryHead
from processors.grouper.id_index import IdIndex, Run, days_old, id_keys, sorted_runs, split
from processors.grouper.log_clock import LogClock, advanced, started
from schemas.times import DAY_MS

MAX_AHEAD_DAYS: Final = 400
"""Most days for which an id of the future is remembered beyond the window.

A device whose clock is a year ahead is still served."""


class Incoming(NamedTuple):
    """One source record as deduplication sees it: its timestamp and its events' projects and 16-byte ids."""

    offset: int
    timestamp_ms: int
    projects: Sequence[int]
    ids: Sequence[bytes]


class Decision(NamedTuple):
    """The positions of a record that carry ids for the first time, and their joined keys.

    `clock` is the log's clock when they were added, `watermark_ms` the greatest record timestamp so far,
    `ahead` as in `DedupRecord`.
    """

    new: list[int]
    keys: bytes
    watermark_ms: int
    clock: LogClock
    ahead: list[tuple[int, bytes]]


class OldIds(NamedTuple):
    """Ids that are at least a window old: keys in the index, and projects and ids by key of the others."""

    known: set[bytes]
    unknown: dict[bytes, tuple[int, bytes]]


class SortedIds(NamedTuple):
    """The ids of some entries, sorted by day and bucket.

    `ahead` has the joined keys of ids of the future by the day until which they are kept.
    """

    by_day: dict[int, dict[int, Run]]
    ahead: dict[int, bytes]

    @staticmethod
    def of(entries: Sequence[DedupEntry]) -> "SortedIds":
        """The ids of these entries."""
        by_day: dict[int, list[bytes]] = {}
        ahead: dict[int, list[bytes]] = {}
        for entry in entries:
            day = entry.day
            by_day.setdefault(day, []).extend([record.keys for record in entry.records])
            for record in [record for record in entry.records if record.ahead]:
                for days, keys in record.ahead:
                    ahead.setdefault(day + days, []).append(keys)
        return SortedIds(
            {day: sorted_runs(b"".join(keys)) for day, keys in by_day.items()},
            {day: b"".join(keys) for day, keys in ahead.items()},
        )


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
    def oldest_day(self) -> int:
        return 0 if self._clock is None else self._clock.day - self._days

    def old_ids(self, records: Sequence[Incoming]) -> OldIds:
        """The ids of the next records that the index may have forgotten.

        It may still forget the known ones within these records.
        """
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
            # Not between these records: days may lie between two copies, neither of which is stored yet.
            if not decisions:
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
        """Days by which the own days of new ids are ahead, by position.

        The index keeps these ids for as much longer.
        """
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

    def added(self, decision: Decision, position: int, key: bytes, ahead: int) -> Decision:
        """A decision with one more new position, after the first copy of its id was forgotten.

        The id's own day is `ahead` days ahead (0 for none).
        """
        day = decision.clock.day
        self._index.restore(day, key)
        if ahead:
            self._index.keep(day + ahead, key)
        keys = dict(zip(decision.new, split(decision.keys), strict=True)) | {position: key}
        later = dict(decision.ahead)
        if ahead:
            later[ahead] = later.get(ahead, b"") + key
        new = sorted(keys)
        return decision._replace(new=new, keys=b"".join(keys[n] for n in new), ahead=sorted(later.items()))

    def restore(self, entries: Iterable[DedupEntry]) -> None:
        """Restore ids and clock from recorded entries. Repeating an entry, or part of it, changes nothing."""
        entries = list(entries)
        self.restore_sorted(entries, [SortedIds.of(entries)])

    def restore_sorted(self, entries: Iterable[DedupEntry | EntryHead], ids: Iterable[SortedIds]) -> None:
        """Restore the clock from recorded entries, and their ids."""
        for entry in sorted(entries, key=lambda entry: (entry.day, entry.last))[-1:]:
            if self._clock is None or entry.day >= self._clock.day:
                self._clock = entry.clock or LogClock(entry.day, entry.day, entry.last + 1)
            self._watermark_ms = max(self._watermark_ms, entry.watermark_ms)
        oldest = self.oldest_day
        for some in ids:
            for day, runs in some.by_day.items():
                if day >= oldest:
                    self._index.put(day, runs)
            for day, keys in some.ahead.items():
                if day >= oldest:
                    self._index.keep(day, keys)


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
