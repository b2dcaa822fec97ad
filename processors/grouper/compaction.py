"""Compaction of the topic `seen`, because a recovery reads all its entries. Pure.

A service with little traffic records an entry for each event or two; such small entries are merged by the
hundred. Entries whose whole day has expired are removed; their ids of the future are first written to
separate entries. All of these changes can be written again, or by two owners, without harm.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from processors.grouper.dedup_log import (
    KEY_BYTES,
    DedupEntry,
    DedupRecord,
    EntryHead,
    decode_entry,
    encode,
    entry_key,
    horizon_key,
)

MERGE_AT: Final = 256
"""Unmerged entries at which they are merged."""
BLOCK_IDS: Final = 10_000
"""Ids of a merged entry: about 200 KB."""
Changes = list[tuple[bytes, bytes | None]]
_NEVER: Final = 1 << 62


class EntryRange(NamedTuple):
    """Offsets, day, key and last needed day of an entry."""

    first: int
    last: int
    day: int
    key: bytes
    last_needed: int

    @property
    def only_ahead(self) -> bool:
        """Whether nothing but ids of future days is left of it."""
        return self.last_needed > self.day

    @staticmethod
    def of(key: bytes, entry: DedupEntry | EntryHead) -> "EntryRange":
        """The range of an entry under its key."""
        return EntryRange(entry.first, entry.last, entry.day, key, entry.last_needed)


class LogCompaction:
    """Keys of one partition's entries: small ones and merged blocks."""

    def __init__(self, partition: int, entries: Mapping[bytes, DedupEntry | EntryHead]) -> None:
        self._partition = partition
        self._small: list[EntryRange] = []
        self._blocks: list[EntryRange] = []
        for key, entry in entries.items():
            (self._blocks if entry.merged else self._small).append(EntryRange.of(key, entry))
        self._small.sort()
        self._set_blocks(self._blocks)

    def add_entries(self, entries: Mapping[bytes, DedupEntry]) -> None:
        self._small += [EntryRange.of(key, entry) for key, entry in entries.items()]

    @property
    def newest(self) -> bytes | None:
        """Key of the last entry, if it has not been merged."""
        return self._small[-1].key if self._small else None

    def needed(self, oldest_day: int) -> bool:
        """Whether there are enough entries to merge, or expired ones."""
        return len(self._small) > MERGE_AT or self._expires < oldest_day

    def _set_blocks(self, blocks: Iterable[EntryRange]) -> None:
        self._blocks = sorted(blocks)
        self._expires = min((block.last_needed for block in self._blocks), default=_NEVER)

    def compact(self, part: Mapping[bytes, bytes], oldest_day: int) -> Iterator[Changes]:
        """Changes to write one after the other.

        Replacements are written before the entries they supersede are tombstoned. The entries of the last
        batch stay as they are: a replay may need them.
        """
        yield from self._expire(part, oldest_day)
        last = self._small[-1].last if self._small else -1
        newest = next((entry for entry in self._small if entry.last == last), None)
        end = 0 if newest is None else min(newest.first, decode_entry(part[newest.key]).batch_start)
        ready = [entry for entry in self._small if entry.last < end]
        if len(ready) < MERGE_AT:
            return
        merged = [self._merge(part, group) for group in _groups(part, ready)]
        yield [(block.key, value) for block, value in merged]
        written = {block.key for block, _ in merged}
        yield [(entry.key, None) for entry in ready if entry.key not in written]
        self._set_blocks([*self._blocks, *(block for block, _ in merged)])
        removed = {entry.key for entry in ready}
        self._small = [entry for entry in self._small if entry.key not in removed]

    def _expire(self, part: Mapping[bytes, bytes], oldest_day: int) -> Iterator[Changes]:
        expired = [block for block in self._blocks if block.last_needed < oldest_day]
        if not expired:
            return
        kept = [block for block in self._blocks if block.last_needed >= oldest_day]
        left = [self._ranged(entry) for entry in _left(part, expired, oldest_day)]
        if ends := [block.last for block in expired if not block.only_ahead]:
            # A recovery must not take the missing entries for a hole, and must find one when the topic has lost its
            # first records: no ids of the future may be before the horizon, where nothing else would miss them.
            ahead = [(block.key, part[block.key]) for block in kept if block.only_ahead]
            horizon = (horizon_key(self._partition), encode(max(ends) + 1))
            yield [horizon, *ahead, *((block.key, value) for block, value in left)]
        written = {block.key for block, _ in left}
        yield [(block.key, None) for block in expired if block.key not in written]
        self._set_blocks([*kept, *(block for block, _ in left)])

    def _ranged(self, entry: DedupEntry) -> tuple[EntryRange, bytes]:
        key = entry_key(self._partition, entry.first, entry.last)
        return EntryRange.of(key, entry), encode(entry)

    def _merge(self, part: Mapping[bytes, bytes], group: list[EntryRange]) -> tuple[EntryRange, bytes]:
        records: dict[int, DedupRecord] = {}
        entries = [decode_entry(part[small.key]) for small in group]
        for entry in entries:
            for r in entry.records:
                records[r.offset] = replace(r, fingerprints=b"")
        ordered = [records[offset] for offset in sorted(records)]
        watermark_ms = max(entry.watermark_ms for entry in entries)
        clock = max(entries, key=lambda entry: entry.last).clock
        published = ordered[-1].offset + 1
        return self._ranged(DedupEntry(watermark_ms, published, ordered, merged=True, clock=clock))


def _groups(part: Mapping[bytes, bytes], ready: list[EntryRange]) -> Iterator[list[EntryRange]]:
    """Adjacent entries of one day, about `BLOCK_IDS` ids together. A merged entry that spanned a hole would hide it."""
    group: list[EntryRange] = []
    size = 0
    for entry in ready:
        ids = len(part[entry.key]) // KEY_BYTES
        apart = bool(group) and (entry.day != group[-1].day or entry.first > group[-1].last + 1)
        if group and (apart or size + ids > BLOCK_IDS * 3 // 2):
            yield group
            group, size = [], 0
        group.append(entry)
        size += ids
    if group:
        yield group


def _left(
    part: Mapping[bytes, bytes], expired: Iterable[EntryRange], oldest_day: int
) -> Iterator[DedupEntry]:
    """Entries with the ids of expired ones that are needed for longer.

    Each is of one day and has about `BLOCK_IDS` ids at most.
    """
    left: DedupEntry | None = None
    for block in expired:
        if block.only_ahead:
            continue
        entry = decode_entry(part[block.key])
        for record in entry.records:
            ahead = tuple((days, keys) for days, keys in record.ahead if entry.day + days >= oldest_day)
            if not ahead:
                continue
            if left is not None and (left.day != entry.day or left.ids_ahead >= BLOCK_IDS):
                yield left
                left = None
            if left is None:
                left = replace(entry, records=[])
            left.records.append(DedupRecord(record.offset, record.total, [], b"", ahead=ahead))
    if left is not None:
        yield left
