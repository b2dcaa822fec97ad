"""The recorded entries of a partition, kept few and young: recovery reads them all.

A quiet service records an entry for each event or two; such entries are merged by the hundred. Entries whose whole day is
forgotten are removed. Both only write what an overlapping or repeated write could write again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from processors.grouper.dedup_log import DedupEntry, DedupRecord, decode_entry, encode, entry_key, horizon_key
from processors.grouper.id_keys import KEY_BYTES

MERGE_AT: Final = 256
"""Entries that have not been merged at which they are."""
BLOCK_IDS: Final = 10_000
"""Ids of a merged entry: about 200 KB."""
Changes = list[tuple[bytes, bytes | None]]


class Known(NamedTuple):
    """What is remembered of an entry."""

    first: int
    last: int
    day: int
    key: bytes


class LogCompaction:
    """Keys of one partition's entries, apart by whether they have been merged."""

    def __init__(self, partition: int, entries: Mapping[bytes, DedupEntry]) -> None:
        self._partition = partition
        self._small: list[Known] = []
        self._blocks: list[Known] = []
        for key, entry in entries.items():
            known = Known(entry.first, entry.last, entry.day, key)
            (self._blocks if entry.merged else self._small).append(known)
        self._small.sort()
        self._blocks.sort()

    def add(self, entries: Iterable[DedupEntry]) -> None:
        """Entries that have just been recorded."""
        for entry in entries:
            key = entry_key(self._partition, entry.first, entry.last)
            self._small.append(Known(entry.first, entry.last, entry.day, key))

    @property
    def newest(self) -> bytes | None:
        """Key of the last entry, where it has not been merged."""
        return self._small[-1].key if self._small else None

    def is_due(self, oldest_day: int) -> bool:
        """Whether there is enough to tidy."""
        return len(self._small) > MERGE_AT or any(known.day < oldest_day for known in self._blocks[:1])

    def tidy(self, part: Mapping[bytes, bytes], oldest_day: int) -> Iterator[Changes]:
        """Changes to write, in this order and each before the next: what replaces stands before what is replaced goes.

        The last entries stay as they are: they may be needed to forward what is in them again.
        """
        yield from self._expire(oldest_day)
        last = self._small[-1].last if self._small else -1
        batch_start = next((k for k in self._small if k.last == last), None)
        until = 0 if batch_start is None else min(batch_start.first, _batch_start(part, batch_start))
        ready = [known for known in self._small if known.last < until]
        if len(ready) < MERGE_AT:
            return
        merged = [self._merge(part, group) for group in _groups(part, ready)]
        yield [(known.key, value) for known, value in merged]
        kept = {known.key for known, _ in merged}
        yield [(known.key, None) for known in ready if known.key not in kept]
        self._blocks = sorted([*self._blocks, *(known for known, _ in merged)])
        gone = {known.key for known in ready}
        self._small = [known for known in self._small if known.key not in gone]

    def _expire(self, oldest_day: int) -> Iterator[Changes]:
        old = [known for known in self._blocks if known.day < oldest_day]
        if not old:
            return
        # First the horizon: a recovery must not take the missing entries for a hole.
        yield [(horizon_key(self._partition), encode(max(known.last for known in old) + 1))]
        yield [(known.key, None) for known in old]
        self._blocks = [known for known in self._blocks if known.day >= oldest_day]

    def _merge(self, part: Mapping[bytes, bytes], group: list[Known]) -> tuple[Known, bytes]:
        records: dict[int, DedupRecord] = {}
        entries = [decode_entry(part[known.key]) for known in group]
        for entry in entries:
            for r in entry.records:
                records[r.offset] = DedupRecord(r.offset, r.total, r.new, r.keys, b"", r.dead)
        ordered = [records[offset] for offset in sorted(records)]
        watermark_ms = max(entry.watermark_ms for entry in entries)
        clock = max(entries, key=lambda entry: entry.last).clock
        entry = DedupEntry(watermark_ms, ordered[0].offset, ordered, merged=True, clock=clock)
        key = entry_key(self._partition, entry.first, entry.last)
        return Known(entry.first, entry.last, entry.day, key), encode(entry)


def _batch_start(part: Mapping[bytes, bytes], known: Known) -> int:
    return decode_entry(part[known.key]).batch_start


def _groups(part: Mapping[bytes, bytes], ready: list[Known]) -> Iterator[list[Known]]:
    """Neighbours of one day, of about `BLOCK_IDS` ids together; neighbours without a hole, or the hole would be covered."""
    group: list[Known] = []
    size = 0
    for known in ready:
        ids = len(part[known.key]) // KEY_BYTES
        apart = bool(group) and (known.day != group[-1].day or known.first > group[-1].last + 1)
        if group and (apart or size + ids > BLOCK_IDS * 3 // 2):
            yield group
            group, size = [], 0
        group.append(known)
        size += ids
    if group:
        yield group
