"""Ids that ClickHouse has stored, made into the entries by which the processors drop repeats. Pure.

Which record of `events` carried an id is no longer known, and need not be: entries stand at the last offsets that were processed,
one block of ids each, and the horizon says that nothing before them is missed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from processors.grouper.compaction import BLOCK_IDS
from processors.grouper.dedup_log import (
    DAY_MS,
    KEY_BYTES,
    DedupEntry,
    DedupRecord,
    encode,
    entry_key,
    horizon_key,
)
from processors.grouper.dedupe import id_keys
from schemas.ids import event_partition

_TOGETHER = 10_000


class IdKeys:
    """Keys by partition of `events` and day of the log.

    `received` are the days of receipt, the newest first. As in the log, a day without events is not counted; and none of them is
    older than `days`, the window, so that no id is forgotten because one event has an invented time of receipt.
    """

    def __init__(self, partitions: int, received: Sequence[int], days: int) -> None:
        self._partitions = partitions
        self._received = received
        self._days = days
        self._keys: dict[int, dict[int, bytearray]] = defaultdict(lambda: defaultdict(bytearray))
        self._waiting: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)

    def add(self, events: Iterable[tuple[int, bytes, int]]) -> None:
        """Projects, 16-byte ids and times of receipt (Unix ms), each id of a project once."""
        for project, identity, received_ms in events:
            place = (event_partition(project, identity, self._partitions), self._day(received_ms // DAY_MS))
            waiting = self._waiting[place]
            waiting.append((project, identity))
            if len(waiting) == _TOGETHER:
                self._settle(place)

    def blocks(self, partition: int) -> Iterator[tuple[int, bytes]]:
        """Day and joined keys, at most `BLOCK_IDS` together, the oldest day first."""
        for place in [place for place in self._waiting if place[0] == partition]:
            self._settle(place)
        for day, keys in sorted(self._keys[partition].items()):
            for start in range(0, len(keys), BLOCK_IDS * KEY_BYTES):
                yield day, bytes(keys[start : start + BLOCK_IDS * KEY_BYTES])

    def _day(self, received: int) -> int:
        newer = sum(day > received for day in self._received)
        return self._received[0] - min(newer, self._days)

    def _settle(self, place: tuple[int, int]) -> None:
        waiting = self._waiting.pop(place)
        projects, identities = zip(*waiting, strict=True)
        self._keys[place[0]][place[1]] += id_keys(projects, identities)


def entries(
    partition: int, last: int, blocks: Iterable[tuple[int, bytes]], day: int
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the topic `seen` for one partition of which all up to offset `last` was processed.

    `day` is the newest day of the log. Nothing was processed where `last` is negative.
    """
    if last < 0:
        return
    found = list(blocks) or [(day, b"")]
    if len(found) > last + 1:
        # More blocks than offsets: so few records were there that all their ids fit into one.
        found = [(found[-1][0], b"".join(keys for _, keys in found))]
    first = last + 1 - len(found)
    yield horizon_key(partition), encode(first)
    for offset, (one, keys) in enumerate(found, first):
        record = DedupRecord(offset, 0, [], keys)
        # What is next is beyond the entry: nothing in it is to be forwarded again.
        entry = DedupEntry(one * DAY_MS, last + 1, [record], merged=True)
        yield entry_key(partition, offset, offset), encode(entry)
