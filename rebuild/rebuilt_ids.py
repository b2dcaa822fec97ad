"""Converts ids stored in ClickHouse to entries of the processors' deduplication log. No I/O.

The record of `events` that carried an id is no longer known and not needed: the entries use the last
processed offsets, one block of ids each, and the horizon marks everything before them as processed. An id
whose own day is after its receipt counts as received on its own day, as in the log.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from processors.grouper.compaction import BLOCK_IDS
from processors.grouper.dedup_log import KEY_BYTES, DedupEntry, DedupRecord, encode, entry_key, horizon_key
from processors.grouper.dedupe import MAX_AHEAD_DAYS
from processors.grouper.id_index import id_keys
from schemas.ids import event_partition, is_uuid7, uuid7_ms
from schemas.times import DAY_MS

_BATCH = 10_000


class KeyBlock(NamedTuple):
    """Joined keys of one day of the log, or of ids that are that many days `ahead` of it."""

    day: int
    keys: bytes
    ahead: int = 0


class IdKeys:
    """Keys by partition of `events` and day of the log.

    `received` are the days of receipt, newest first. As in the log, days without events don't count, and no
    day is older than the window of `days`, so that a single wrong time of receipt doesn't expire any id.
    """

    def __init__(self, partitions: int, received: Sequence[int], days: int) -> None:
        self._partitions = partitions
        self._received = received
        self._days = days
        self._keys: dict[int, dict[int, bytearray]] = defaultdict(lambda: defaultdict(bytearray))
        self._pending: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)

    def add_events(self, events: Iterable[tuple[int, bytes, int]]) -> None:
        """Add projects, 16-byte ids and times of receipt (Unix ms), each id of a project once."""
        for project, identity, received_ms in events:
            own = uuid7_ms(identity) // DAY_MS if is_uuid7(identity) else 0
            day = max(self._day(received_ms // DAY_MS), min(own, self._received[0] + MAX_AHEAD_DAYS))
            bucket = (event_partition(project, identity, self._partitions), day)
            pending = self._pending[bucket]
            pending.append((project, identity))
            if len(pending) == _BATCH:
                self._flush(bucket)

    def blocks(self, partition: int) -> Iterator[KeyBlock]:
        """At most `BLOCK_IDS` per block, oldest day first."""
        for bucket in [bucket for bucket in self._pending if bucket[0] == partition]:
            self._flush(bucket)
        newest = self._received[0] if self._received else 0
        for day, keys in sorted(self._keys[partition].items()):
            for start in range(0, len(keys), BLOCK_IDS * KEY_BYTES):
                joined = bytes(keys[start : start + BLOCK_IDS * KEY_BYTES])
                yield KeyBlock(min(day, newest), joined, max(0, day - newest))

    def _day(self, received: int) -> int:
        newer = sum(day > received for day in self._received)
        return self._received[0] - min(newer, self._days)

    def _flush(self, bucket: tuple[int, int]) -> None:
        projects, identities = zip(*self._pending.pop(bucket), strict=True)
        self._keys[bucket[0]][bucket[1]] += id_keys(projects, identities)


def entries(partition: int, last: int, blocks: Iterable[KeyBlock], day: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the topic `seen` for a partition that was processed up to offset `last` (-1: not at all).

    `day` is the newest day of the log.
    """
    if last < 0:
        return
    remaining = [[block] for block in blocks] or [[KeyBlock(day, b"")]]
    if len(remaining) > last + 1:
        # More blocks than offsets: there were so few records that one entry has room for all ids.
        remaining = [[block for [block] in remaining]]
    first = last + 1 - len(remaining)
    yield horizon_key(partition), encode(first)
    for offset, together in enumerate(remaining, first):
        plain = b"".join(block.keys for block in together if not block.ahead)
        ahead = tuple((block.ahead, block.keys) for block in together if block.ahead)
        record = DedupRecord(offset, 0, [], plain, ahead=ahead)
        # The next offset is beyond the entry: nothing in it is forwarded again.
        entry = DedupEntry(together[-1].day * DAY_MS, last + 1, [record], merged=True)
        yield entry_key(partition, offset, offset), encode(entry)
