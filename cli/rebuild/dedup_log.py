"""Converts ids stored in ClickHouse to entries of the processors' deduplication log. No I/O.

The record of `events` that carried an id is no longer known and not needed: the entries use the last processed offsets, one
block of ids each, and the horizon marks everything before them as processed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from processors.grouper.compaction import BLOCK_IDS
from processors.grouper.dedup_log import DedupEntry, DedupRecord, encode, entry_key, horizon_key
from processors.grouper.id_keys import KEY_BYTES, id_keys
from processors.grouper.log_clock import DAY_MS
from schemas.ids import event_partition

_BATCH = 10_000


class IdKeys:
    """Keys by partition of `events` and day of the log.

    `received` are the days of receipt, newest first. As in the log, days without events don't count, and no day is older
    than the window of `days`, so that a single wrong time of receipt doesn't expire any id.
    """

    def __init__(self, partitions: int, received: Sequence[int], days: int) -> None:
        self._partitions = partitions
        self._received = received
        self._days = days
        self._keys: dict[int, dict[int, bytearray]] = defaultdict(lambda: defaultdict(bytearray))
        self._pending: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)

    def add(self, events: Iterable[tuple[int, bytes, int]]) -> None:
        """Add projects, 16-byte ids and times of receipt (Unix ms), each id of a project once."""
        for project, identity, received_ms in events:
            bucket = (event_partition(project, identity, self._partitions), self._day(received_ms // DAY_MS))
            pending = self._pending[bucket]
            pending.append((project, identity))
            if len(pending) == _BATCH:
                self._flush(bucket)

    def blocks(self, partition: int) -> Iterator[tuple[int, bytes]]:
        """Days and joined keys, at most `BLOCK_IDS` per block, oldest day first."""
        for bucket in [bucket for bucket in self._pending if bucket[0] == partition]:
            self._flush(bucket)
        for day, keys in sorted(self._keys[partition].items()):
            for start in range(0, len(keys), BLOCK_IDS * KEY_BYTES):
                yield day, bytes(keys[start : start + BLOCK_IDS * KEY_BYTES])

    def _day(self, received: int) -> int:
        newer = sum(day > received for day in self._received)
        return self._received[0] - min(newer, self._days)

    def _flush(self, bucket: tuple[int, int]) -> None:
        projects, identities = zip(*self._pending.pop(bucket), strict=True)
        self._keys[bucket[0]][bucket[1]] += id_keys(projects, identities)


def entries(
    partition: int, last: int, blocks: Iterable[tuple[int, bytes]], day: int
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the topic `seen` for a partition that was processed up to offset `last` (-1: not at all).

    `day` is the newest day of the log.
    """
    if last < 0:
        return
    remaining = list(blocks) or [(day, b"")]
    if len(remaining) > last + 1:
        # More blocks than offsets: there were so few records that one block has room for all ids.
        remaining = [(remaining[-1][0], b"".join(keys for _, keys in remaining))]
    first = last + 1 - len(remaining)
    yield horizon_key(partition), encode(first)
    for offset, (block_day, keys) in enumerate(remaining, first):
        record = DedupRecord(offset, 0, [], keys)
        # The next offset is beyond the entry: nothing in it is forwarded again.
        entry = DedupEntry(block_day * DAY_MS, last + 1, [record], merged=True)
        yield entry_key(partition, offset, offset), encode(entry)
