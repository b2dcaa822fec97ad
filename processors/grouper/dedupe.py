"""Dropping repeats: the same prefix of the log gives the same decisions, on any worker, after any crash, at any time of day.

Time is the log's own (`processors.grouper.log_clock`). Ids are kept by its day and a whole day is forgotten when it lies more than the
window behind, so an id is remembered for the window and up to a day longer, and longer still where records are few.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from processors.grouper.dedup_log import DedupEntry, DedupRecord
from processors.grouper.id_index import IdIndex
from processors.grouper.id_keys import KEY_BYTES, id_keys
from processors.grouper.log_clock import LogClock, advanced, started
from processors.positions import OffsetRange, first_hole


class Incoming(NamedTuple):
    """One source record as deduplication sees it: its timestamp and its events' projects and 16-byte ids."""

    offset: int
    timestamp_ms: int
    projects: Sequence[int]
    ids: Sequence[bytes]


class Decision(NamedTuple):
    """Which positions of a record carry ids for the first time, their joined keys, and the log's clock when they were added.

    `watermark_ms` is the greatest record timestamp so far.
    """

    new: list[int]
    keys: bytes
    watermark_ms: int
    clock: LogClock


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
        """The first day that is still remembered."""
        return 0 if self._clock is None else self._clock.day - self._days

    def decide(self, records: Sequence[Incoming]) -> list[Decision]:
        """Decisions about consecutive records, in order; their ids count as seen from here on."""
        decisions: list[Decision] = []
        for clock, watermark_ms, together in self._by_day(records):
            self._index.forget_before(clock.day - self._days)
            projects = [p for record in together for p in record.projects]
            ids = [i for record in together for i in record.ids]
            keys = id_keys(projects, ids) if ids else b""
            new = self._index.new(clock.day, keys) if ids else []
            decisions += _shared(together, keys, new, watermark_ms, clock)
        return decisions

    def _by_day(self, records: Sequence[Incoming]) -> Iterable[tuple[LogClock, int, list[Incoming]]]:
        """Runs of records in the same day of the log, with the clock and the watermark after each run; moves both."""
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
        """Take up what recorded entries say. Repeating an entry, or part of it, changes nothing."""
        entries = sorted(entries, key=lambda entry: (entry.day, entry.last))
        for entry in entries[-1:]:
            if self._clock is None or entry.day >= self._clock.day:
                self._clock = entry.clock or LogClock(entry.day, entry.day, entry.last + 1)
            self._watermark_ms = max(self._watermark_ms, entry.watermark_ms)
        by_day: dict[int, dict[int, bytes]] = {}
        taken: set[int] = set()
        for entry in entries:
            if entry.day < self.oldest_day:
                continue
            for record in entry.records:
                if record.keys and record.offset not in taken:
                    taken.add(record.offset)
                    by_day.setdefault(entry.day, {})[record.offset] = record.keys
        for day, keys in by_day.items():
            self._index.restore(day, keys.values())


def _shared(
    records: Sequence[Incoming], keys: bytes, new: list[int], watermark_ms: int, clock: LogClock
) -> Iterable[Decision]:
    """The joint answer split by record."""
    at = start = 0
    for record in records:
        end = start + len(record.ids)
        positions = []
        while at < len(new) and new[at] < end:
            positions.append(new[at] - start)
            at += 1
        mine = keys[start * KEY_BYTES : end * KEY_BYTES]
        if len(positions) < len(record.ids):
            mine = b"".join(mine[i * KEY_BYTES : (i + 1) * KEY_BYTES] for i in positions)
        yield Decision(positions, mine, watermark_ms, clock)
        start = end


class Resumption(NamedTuple):
    """Where to go on after a restart.

    `next_offset` is the first record to be delivered (None: from the log's start), and `decided` holds what is already
    recorded from there on. Records before `forwarded` are only to be remembered, those from there on are forwarded again as they
    were recorded. `lost` says whether entries are missing, `boundary` is that of the last one.
    """

    next_offset: int | None
    decided: dict[int, DedupRecord]
    forwarded: int = 0
    lost: bool = True
    boundary: tuple[int, int] | None = None


def resumption(entries: Sequence[DedupEntry], start: int) -> Resumption:
    """Judge recorded entries of one partition; `start` is the first offset that must still be covered by them.

    Takes are handled one after the other, so only the last one can be recorded without having been forwarded: it is
    forwarded again. Where entries are missing (a trimmed topic), processing goes back to the hole, but what stood in it was
    forwarded: done again under rules that have changed since, its events would be counted in two issues.
    """
    if not entries:
        return Resumption(None, {})
    newest = max(entries, key=lambda entry: entry.last)
    hole = first_hole((OffsetRange(entry.first, entry.last) for entry in entries), start)
    next_offset = max(start, min(hole, newest.batch_start))
    decided = {r.offset: r for entry in entries for r in entry.records if r.offset >= next_offset}
    return Resumption(next_offset, decided, newest.batch_start, hole <= newest.last, newest.boundary)
