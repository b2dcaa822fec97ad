"""Faust tables whose changes are written as batches.

`table[key] = value` costs 45 to 250 µs a change and returns before the change is safe. Here the changelog is
written first, as one batch, and the local store follows once all in-sync replicas have it. So the store
equals the result of a recovery.
"""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from faust import App, Table
from faust.stores.memory import Store
from faust.types import TP
from yarl import URL

from broker.batch_producer import BatchProducer
from processors.changelog import Changelog, Supersedes

# As in `processors.faust_app.patches`.
_FAUST_LOG: Final = logging.getLogger("faust")
Restore = Callable[[set[int]], Awaitable[None]]


class PartitionStore(Store[bytes, bytes]):
    """Bytes in memory by partition, so that a partition can be dropped as a whole.

    `reached` is the changelog offset up to which each partition was read or written: after a rebalance,
    reading continues there. Faust stores such an offset only for stores on disk, and reads others from the
    start.
    """

    logger = _FAUST_LOG
    changelog: Changelog
    """Says which records are dropped; its table sets it."""

    def __post_init__(self) -> None:
        self.parts: defaultdict[int, dict[bytes, bytes]] = defaultdict(dict)
        self.reached: dict[int, int] = {}
        self.read = 0
        self._held: set[int] = set()
        self._generation: int | None = None
        super().__post_init__()

    def hold(self, partitions: set[int], generation: int) -> None:
        """Keep partitions that remain assigned.

        From now on only records read in this generation of the group are applied.
        """
        remaining = self._held & partitions
        for partition in [p for p in self.parts if p not in remaining]:
            del self.parts[partition]
        self.reached = {p: offset for p, offset in self.reached.items() if p in remaining}
        self.changelog.hold(remaining)
        self._held, self._generation = partitions, generation

    def written(self, partition: int, changes: Iterable[tuple[bytes, bytes | None]], last: int) -> None:
        """Apply changes that the changelog has up to offset `last`."""
        self.apply(partition, changes)
        self.reached[partition] = last

    def persisted_offset(self, tp: TP) -> int | None:
        """The changelog offset up to which the partition was read."""
        return self.reached.get(tp.partition)

    def apply(self, partition: int, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Apply changes; None removes the key."""
        part = self.parts[partition]
        for key, value in changes:
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value

    def read_records(self, partition: int, records: Sequence[Any], generation: int) -> bool:
        """Apply consecutive records that a recovery reads; False where the partition has moved meanwhile.

        Applied, they would make an incomplete partition look complete.
        """
        if generation != self._generation or partition not in self._held:
            return False
        part, log = self.parts[partition], self.changelog.log(partition)
        for record in records:
            key = record.key or b""
            if log.read(record.offset, key, record.value, record.headers, part.get(key)):
                self.apply(partition, [(key, record.value)])
        self.reached[partition] = records[-1].offset
        self.read += len(records)
        return True


class BatchTable(Table[bytes, bytes]):
    """A table with the given changelog topic.

    `restore` is awaited with the assigned partitions after each recovery. With `owner`, the worker's name,
    new partitions are opened (`processors.changelog`).
    """

    logger = _FAUST_LOG

    def __init__(
        self,
        app: App,
        name: str,
        topic: str,
        partitions: int,
        producer: BatchProducer,
        restore: Restore,
        *,
        owner: str | None = None,
        supersedes: Supersedes | None = None,
    ) -> None:
        changelog = app.topic(
            topic, key_type=bytes, value_type=bytes, partitions=partitions, acks=False, internal=True
        )
        super().__init__(
            app,
            name=name,
            key_type=bytes,
            value_type=bytes,
            partitions=partitions,
            changelog_topic=changelog,
            beacon=app.tables.beacon,
        )
        self._topic = topic
        self._changelog = Changelog(topic, producer, supersedes)
        self._owner = owner
        self._open: set[int] = set()
        self._restore = restore

    def _new_store(self) -> PartitionStore:
        store = PartitionStore(
            URL("memory://"), self.app, self, table_name=self.name, key_type=bytes, value_type=bytes
        )
        store.changelog = self._changelog
        return store

    @property
    def _parts(self) -> PartitionStore:
        return cast(PartitionStore, self.data)

    @property
    def read(self) -> int:
        """Records that recoveries have applied."""
        return self._parts.read

    def part(self, partition: int) -> Mapping[bytes, bytes]:
        """The keys and values of one partition."""
        return self._parts.parts[partition]

    def epoch(self, partition: int) -> int | None:
        """The epoch of this process, None where it has not opened the partition."""
        return self._changelog.log(partition).epoch

    async def write(self, partition: int, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Change keys of one partition. On return the changes are safe.

        Raises KafkaError or PartitionsLost, with nothing applied.
        """
        changes = list(changes)
        if not changes:
            return
        self._parts.written(partition, changes, await self._changelog.write(partition, changes))

    async def check_owner(self, partition: int) -> None:
        """Raise PartitionsLost if another process has written to the partition."""
        self._parts.reached[partition] = await self._changelog.check_owner(partition)

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Drop revoked partitions, and open new ones before their end is looked up."""
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        held = {tp.partition for tp in assigned if tp.topic == self._topic}
        self._parts.hold(held, generation_id)
        if generation_id != self.app.consumer_generation_id:
            # Faust doesn't recover for an assignment that is not the latest.
            self._open = set()
            return
        if self._owner is not None:
            for partition in sorted(held - self._open):
                await self._changelog.open(partition, self._owner)
        self._open = held

    async def on_recovery_completed(self, active_tps: set[TP], other_tps: set[TP]) -> None:
        """Restore the stages, unless the group rebalances meanwhile.

        Faust swallows exceptions raised here, so a failure crashes the app.
        """
        generation = self.app.consumer_generation_id
        try:
            await super().on_recovery_completed(active_tps, other_tps)
            for partition in sorted(tp.partition for tp in active_tps if tp.topic == self._topic):
                await self.write(partition, self._changelog.corrections(partition, self.part(partition)))
            if generation == self.app.consumer_generation_id:
                await self._restore({tp.partition for tp in active_tps})
        except Exception as error:
            await self.app.crash(error)
            raise
