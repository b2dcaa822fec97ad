"""Changelogs with one owner a partition: who owns it is decided by the log, not by clocks.

An owner opens its partition with a record, whose offset is the owner's *epoch*. Each later record of the
owner names it.

- *Readers* drop records of an older epoch after the opening of a newer one. A record without an epoch comes from
  `svc rebuild` and is read unchanged.
- *The owner* expects each batch directly after the last known record. Otherwise another process has written:
  PartitionsLost, before anything is published.

The opening is written before the end of the log is looked up, so a recovery reads all that an earlier owner
could get accepted.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.errors import PartitionsLost
from broker.message import Message

OWNER_KEY: Final = b"owner"
"""Key of the opening. Its value is the owner's name, for people."""
CHECK_KEY: Final = b"check"
"""Key of a record that says nothing: its offset shows whether the partition is still owned."""
EPOCH_HEADER: Final = "epoch"

Changes = Iterable[tuple[bytes, bytes | None]]
Supersedes = Callable[[bytes, bytes], bool]
"""Whether a value may replace a stored one."""


def epoch_of(headers: Any) -> int | None:
    """The epoch that a record names; Faust and aiokafka give headers as pairs or as a dict."""
    for name, value in headers.items() if isinstance(headers, dict) else headers or ():
        if name == EPOCH_HEADER:
            return int(value)
    return None


class PartitionLog:
    """One partition as its readers and its owner know it. Pure.

    - `newest`: the newest epoch that was read, -1 before any; `opener` is the name of the last owner that was
      read.
    - `epoch`: the epoch of this process, None where it has not opened the partition.
    - `end`: the offset after the last known record, None before any.
    - `dropped`: keys whose last record in the log was dropped; compaction keeps that record alone.
    """

    def __init__(self, supersedes: Supersedes | None = None) -> None:
        self.newest = -1
        self.opener = ""
        self.epoch: int | None = None
        self.end: int | None = None
        self.dropped: set[bytes] = set()
        self.lock = asyncio.Lock()
        self._supersedes = supersedes

    def read(self, offset: int, key: bytes, value: bytes | None, headers: Any, stored: bytes | None) -> bool:
        """Note a record of the log; returns whether it changes the table, in which its key has the value `stored`."""
        self.end = max(self.end or 0, offset + 1)
        if key == OWNER_KEY:
            self.newest = max(self.newest, offset)
            self.opener = (value or b"").decode(errors="replace")
            return False
        if key == CHECK_KEY:
            return False
        epoch = epoch_of(headers)
        if (epoch is not None and epoch < self.newest) or not self._may_replace(stored, value):
            self.dropped.add(key)
            return False
        if epoch is not None:
            # The opening of this epoch may be compacted away.
            self.newest = epoch
        self.dropped.discard(key)
        return True

    def _may_replace(self, stored: bytes | None, value: bytes | None) -> bool:
        if self._supersedes is None or stored is None:
            return True
        return value is not None and self._supersedes(value, stored)

    def opened(self, offset: int) -> None:
        """This process has opened the partition. The recovery that follows reads the opening in its place."""
        self.epoch, self.end = offset, offset + 1

    def check(self) -> None:
        """Raise PartitionsLost if a newer owner was read."""
        if self.epoch is not None and self.newest > self.epoch:
            raise PartitionsLost(
                f"the worker {self.opener!r} opened the partition at offset {self.newest}, after this process did"
                f" at {self.epoch}: it is another process, or this one has joined the group again"
            )

    def wrote(self, batches: Iterable[WrittenBatch]) -> None:
        """Note batches that this process has written. Raises PartitionsLost where another has written before them."""
        for batch in batches:
            if self.end is not None and batch.first != self.end:
                raise PartitionsLost(f"another worker wrote at offset {self.end}: {batch.first} is the next")
            self.end = batch.last + 1

    def headers(self) -> list[tuple[str, bytes]]:
        return [] if self.epoch is None else [(EPOCH_HEADER, b"%d" % self.epoch)]


class Changelog:
    """The changelog of a table.

    With `supersedes`, an older value never replaces a newer one, even of another writer, and no tombstone replaces
    a value: the owner of such a table removes nothing.

    A doubt: such keys name no owner. The next recovery corrects a late write, unless Kafka compacts before it.
    """

    def __init__(self, topic: str, producer: BatchProducer, supersedes: Supersedes | None = None) -> None:
        self._topic = topic
        self._producer = producer
        self._supersedes = supersedes
        self._logs: dict[int, PartitionLog] = {}

    def log(self, partition: int) -> PartitionLog:
        if partition not in self._logs:
            self._logs[partition] = PartitionLog(self._supersedes)
        return self._logs[partition]

    def hold(self, partitions: set[int]) -> None:
        """Forget other partitions."""
        self._logs = {p: log for p, log in self._logs.items() if p in partitions}

    async def open(self, partition: int, owner: str) -> None:
        """Become the owner. Raises KafkaError or PartitionsLost."""
        log = self.log(partition)
        async with log.lock:
            [batch] = await self._producer.write(self._topic, partition, [Message(OWNER_KEY, owner.encode())])
            log.opened(batch.first)

    async def write(self, partition: int, changes: Changes) -> int:
        """Write changes; returns the last offset.

        Raises KafkaError or PartitionsLost: then none of the changes may be used.
        """
        log = self.log(partition)
        # The grouper and the aggregator both write to `seen`; offsets are compared in the order of the writes.
        async with log.lock:
            log.check()
            headers = log.headers()
            messages = [Message(key, value, headers) for key, value in changes]
            batches = await self._producer.write(self._topic, partition, messages)
            log.wrote(batches)
        log.dropped.difference_update(message.key or b"" for message in messages)
        return batches[-1].last

    async def check_owner(self, partition: int) -> int:
        """Return an offset if no other process wrote since the last write. Raises KafkaError or PartitionsLost."""
        return await self.write(partition, [(CHECK_KEY, b"")])

    def corrections(self, partition: int, part: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes | None]]:
        """Values that the owner rewrites after a recovery: those of keys whose last record in the log was dropped."""
        return [(key, part.get(key)) for key in sorted(self.log(partition).dropped)]
