"""The topic `grouped` as a member of the writer's group: records, commits that carry a plan, and single ranges read again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from broker.client import administering, committed_offsets, name_of, new_consumer
from broker.commit import COMMIT_SECONDS, commit, leave
from broker.errors import KafkaError, OffsetOutOfRangeError
from broker.types import Consumer, OffsetAndMetadata, RebalanceListener, Record, TopicPartition
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.writer.manifest import BlockManifest, NoBlock, decode, encode

Records = Mapping[int, list[Record]]
_SESSION_MS: Final = 10_000
# Waiting for ClickHouse is no reason to lose the partitions.
_POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
_FETCH_BYTES: Final = 16 * 1024 * 1024
_RANGE_WAIT_MS: Final = 1000
_RANGE_WAITS: Final = 30


class Committed(Struct, frozen=True):
    """Where a partition stands: the next offset, and what was under way or done there."""

    offset: int
    state: BlockManifest | NoBlock


class Listener(RebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Passes a rebalance on to two coroutines."""

    def __init__(
        self, revoked: Callable[[], Awaitable[None]], assigned: Callable[[set[int]], Awaitable[None]]
    ) -> None:
        self._revoked = revoked
        self._assigned = assigned

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:  # noqa: ARG002
        """Before the group is joined again."""
        await self._revoked()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """When the partitions are known."""
        await self._assigned({place.partition for place in assigned})


class GroupedSource:
    """A static member of the writer's group on the topic `grouped`. Every method may raise KafkaError."""

    def __init__(self, settings: WriterSettings, commit_seconds: float = COMMIT_SECONDS) -> None:
        self._commit_seconds = commit_seconds
        self.topic = name_of(settings, Topic.GROUPED)
        self._settings = settings
        self._group = settings.writer_group
        self._started: Consumer | None = None

    async def start(self, listener: Listener) -> None:
        """Join the group."""
        consumer = new_consumer(
            self._settings,
            group_id=self._group,
            group_instance_id=f"{self._group}-{self._settings.writer_worker}",
            session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=2000,
            rebalance_timeout_ms=_SESSION_MS,
            max_poll_interval_ms=_POLL_INTERVAL_MS,
            fetch_max_bytes=_FETCH_BYTES,
            fetch_max_wait_ms=100,
        )
        try:
            await consumer.start()
        except KafkaError:
            await consumer.stop()
            raise
        consumer.subscribe([self.topic], listener=listener)
        self._started = consumer

    async def stop(self) -> None:
        """Leave without telling: a static member that is back within the session keeps its partitions."""
        if self._started is not None:
            await leave(self._started)

    @property
    def _consumer(self) -> Consumer:
        assert self._started is not None
        return self._started

    async def read(self, timeout: float, limit: int) -> Records:
        """The next records by partition, at most `limit`; none after `timeout` seconds."""
        got = await self._consumer.getmany(timeout_ms=max(1, int(timeout * 1000)), max_records=limit)
        return {place.partition: records for place, records in got.items()}

    def seek(self, partition: int, offset: int) -> None:
        """Read on from an offset."""
        self._consumer.seek(TopicPartition(self.topic, partition), offset)

    async def bounds(self, partitions: set[int]) -> dict[int, tuple[int, int]]:
        """The first offset of each partition, and the one that its next record gets."""
        places = [TopicPartition(self.topic, partition) for partition in partitions]
        begins = await self._consumer.beginning_offsets(places)
        ends = await self._consumer.end_offsets(places)
        return {place.partition: (begins[place], ends[place]) for place in places}

    def check(self) -> None:
        """Raises what ended the client's part in the group, if anything has: its own reads would say so, but nothing is read meanwhile."""
        self._consumer._coordinator.check_errors()

    async def commit(self, states: Mapping[int, tuple[int, BlockManifest | NoBlock]]) -> None:
        """Commit offset and state of partitions.

        Raises CommitFailedError once the group has another owner for them, and CommitStalled where nobody answers.
        """
        offsets = {
            TopicPartition(self.topic, partition): OffsetAndMetadata(offset, encode(state))
            for partition, (offset, state) in states.items()
        }
        await commit(self._consumer, offsets, self._commit_seconds)

    async def committed(self, partitions: set[int]) -> dict[int, Committed]:
        """What is committed of partitions; one without a commit is missing."""
        # The consumer's own `committed` leaves out the metadata.
        places = [TopicPartition(self.topic, partition) for partition in sorted(partitions)]
        async with administering(self._settings) as admin:
            found = await committed_offsets(admin, self._group, places)
        return {
            place.partition: Committed(commit.offset, decode(commit.metadata or ""))
            for place, commit in found.items()
            if commit.offset >= 0
        }

    async def range(self, partition: int, first: int, last: int) -> AsyncIterator[Record]:
        """The records of a range, whoever owns the partition; those past the topic's retention are missing.

        Raises KafkaError when the broker doesn't hand them out.
        """
        place = TopicPartition(self.topic, partition)
        consumer = new_consumer(self._settings, auto_offset_reset="none")
        await consumer.start()
        try:
            consumer.assign([place])
            begin = (await consumer.beginning_offsets([place]))[place]
            position = max(first, begin)
            consumer.seek(place, position)
            waits = 0
            while position <= last:
                records: list[Any] = (await consumer.getmany(place, timeout_ms=_RANGE_WAIT_MS)).get(place, [])
                waits = 0 if records else waits + 1
                if waits > _RANGE_WAITS:
                    raise KafkaError(f"records {position} to {last} of {self.topic}/{partition} don't come")
                for record in records:
                    if record.offset > last:
                        return
                    position = record.offset + 1
                    yield record
        except OffsetOutOfRangeError:
            return
        finally:
            await asyncio.shield(consumer.stop())
