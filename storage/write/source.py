"""The topic `grouped`, read as a member of the writer's group, with the records of `events` that it is about.

It offers records, commits that carry a plan, and ranges read again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

from msgspec import Struct

from broker.client import committed_offsets, name_of, new_consumer, open_admin, open_consumer
from broker.commit import COMMIT_SECONDS, commit, commit_once, leave
from broker.consumer_lag import clients, end_offsets, partitions_without_member
from broker.errors import KafkaError, OffsetOutOfRangeError
from broker.member_name import MemberName, holders
from broker.rights import RequiredRights
from broker.startup import wait_for_rights
from broker.types import Consumer, OffsetAndMetadata, RebalanceListener, Record, TopicPartition
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.exactly_once.block_plan import BlockPlan, NoBlock, decode_plan, encode_plan
from storage.exactly_once.source_values import SourceValues, open_source_values

Records = Mapping[int, list[Record]]
# A writer that waits for ClickHouse keeps its partitions.
_POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
_FETCH_BYTES: Final = 16 * 1024 * 1024
_FETCH_WAIT_MS: Final = 500
"""How long a fetch waits without records; the broker answers immediately when one arrives. A change of the
group waits for it."""
_RANGE_WAIT_MS: Final = 1000
_RANGE_WAITS: Final = 30
_BEYOND_SECONDS: Final = 30.0
"""How long brokers must say that a range begins behind the log's end."""


class Committed(Struct, frozen=True):
    """The commit of a partition: its next offset, and the block in progress or the state after the last."""

    offset: int
    state: BlockPlan | NoBlock


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
        await self._assigned({tp.partition for tp in assigned})


class GroupedSource:
    """A static member of the writer's group on the topic `grouped`. Every method may raise KafkaError."""

    def __init__(self, settings: WriterSettings, commit_seconds: float = COMMIT_SECONDS) -> None:
        self._commit_seconds = commit_seconds
        self.topic = name_of(settings, Topic.GROUPED)
        self._settings = settings
        self._group = settings.writer_group
        self._started: Consumer | None = None
        self._instance = f"{self._group}-{settings.writer_worker}"
        self.name = MemberName(
            self._group,
            f"SVC_WRITER_WORKER={settings.writer_worker}",
            settings.kafka_session_seconds,
            partial(holders, settings, self._group, self._instance),
        )

    async def start(self, listener: Listener) -> None:
        consumer = new_consumer(
            self._settings,
            group_id=self._group,
            group_instance_id=self._instance,
            rebalance_timeout_ms=int(self._settings.kafka_session_seconds * 1000),
            max_poll_interval_ms=_POLL_INTERVAL_MS,
            fetch_max_bytes=_FETCH_BYTES,
            fetch_max_wait_ms=_FETCH_WAIT_MS,
        )
        commit_once(consumer)
        try:
            await consumer.start()
        except BaseException:
            await leave(consumer)
            raise
        self.name.begin()
        consumer.subscribe([self.topic], listener=listener)
        self._started = consumer

    async def stop(self) -> None:
        """Stop without leaving the group.

        A static member that restarts within the session keeps its partitions.
        """
        if self._started is not None:
            await leave(self._started)

    async def wait_for_rights(self) -> None:
        """Return once Kafka grants the rights of the events' stage; the log names missing ones."""
        need = RequiredRights(
            reads=(Topic.GROUPED, Topic.EVENTS),
            writes=(Topic.DEAD_LETTERS, Topic.OUTCOMES),
            groups=(self._group,),
        )
        await wait_for_rights(self._settings, need)

    @property
    def _consumer(self) -> Consumer:
        assert self._started is not None
        return self._started

    async def read(self, partitions: Iterable[int], timeout: float, limit: int) -> Records:
        """The next records of these partitions, at most `limit`; none after `timeout` seconds."""
        batches = await self._consumer.getmany(
            *(TopicPartition(self.topic, partition) for partition in partitions),
            timeout_ms=max(1, int(timeout * 1000)),
            max_records=limit,
        )
        return {tp.partition: records for tp, records in batches.items()}

    def source_values(self, partitions: Iterable[int]) -> AbstractAsyncContextManager[SourceValues]:
        """The records of these partitions of `events`."""
        return open_source_values(self._settings, partitions)

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self.topic, partition), offset)

    async def bounds(self, partitions: set[int]) -> dict[int, tuple[int, int]]:
        """The first offset of each partition, and the one that its next record gets."""
        tps = [TopicPartition(self.topic, partition) for partition in partitions]
        begins = await self._consumer.beginning_offsets(tps)
        ends = await self._consumer.end_offsets(tps)
        return {tp.partition: (begins[tp], ends[tp]) for tp in tps}

    async def source_ends(self) -> dict[int, int]:
        """The source position that the next record of each partition of `events` gets."""
        async with clients(self._settings) as (admin, consumer):
            ends = await end_offsets(admin, consumer, name_of(self._settings, Topic.EVENTS))
        return {tp.partition: end for tp, end in ends.items()}

    def joined(self) -> None:
        """Note the id under which the group was joined."""
        self.name.joined(self._consumer._coordinator.member_id)

    async def without_writer(self) -> dict[int, int]:
        """The partitions that no member of the group writes, each with the number of records that wait.

        The group distributes them once one of its members learns that it may.
        """
        left = await partitions_without_member(self._settings, self._group, Topic.GROUPED)
        if left:
            await self._consumer._client.force_metadata_update()
        return left

    def check(self) -> None:
        """Raise the error that ended the membership in the group, if any.

        Reads raise it too, but nothing is read meanwhile.
        """
        self._consumer._coordinator.check_errors()

    async def commit(self, states: Mapping[int, tuple[int, BlockPlan | NoBlock]]) -> None:
        """Commit offset and state of partitions.

        Raises CommitFailedError once the group has another owner for them, and CommitStalled where no answer
        comes.
        """
        offsets = {
            TopicPartition(self.topic, partition): OffsetAndMetadata(offset, encode_plan(state))
            for partition, (offset, state) in states.items()
        }
        await commit(self._consumer, offsets, self._commit_seconds)

    async def committed(self, partitions: set[int]) -> dict[int, Committed]:
        """The committed positions of partitions; one without a commit is missing."""
        # The consumer's own `committed` has no metadata.
        tps = [TopicPartition(self.topic, partition) for partition in sorted(partitions)]
        async with open_admin(self._settings) as admin:
            commits = await committed_offsets(admin, self._group, tps)
        return {
            tp.partition: Committed(commit.offset, decode_plan(commit.metadata or ""))
            for tp, commit in commits.items()
            if commit.offset >= 0
        }

    async def ranges(self, spans: Mapping[int, tuple[int, int]]) -> AsyncIterator[Record]:
        """The records from the first to the last offset of each partition, also of other owners.

        One client reads them; each partition's are in order. Those past the topic's retention are missing.
        Raises KafkaError when the broker doesn't deliver them.
        """
        unread = {TopicPartition(self.topic, partition): last for partition, (_, last) in spans.items()}
        if not unread:
            return
        waits, clock = 0, asyncio.get_running_loop().time
        beyond: dict[TopicPartition, float] = {}
        async with open_consumer(
            self._settings, auto_offset_reset="none", fetch_max_bytes=_FETCH_BYTES
        ) as consumer:
            consumer.assign(list(unread))
            for tp, begin in (await consumer.beginning_offsets(list(unread))).items():
                consumer.seek(tp, max(spans[tp.partition][0], begin))
            while unread := {tp: last for tp, last in unread.items() if await consumer.position(tp) <= last}:
                try:
                    batches = await consumer.getmany(*unread, timeout_ms=_RANGE_WAIT_MS)
                except OffsetOutOfRangeError as error:
                    for tp, begin in (await consumer.beginning_offsets(list(error.args[0]))).items():
                        if begin > await consumer.position(tp):
                            consumer.seek(tp, begin)
                        elif clock() - beyond.setdefault(tp, clock()) > _BEYOND_SECONDS:
                            # The topic was created again.
                            del unread[tp]
                        else:
                            # A former leader that still answers knows an earlier end: ask another broker who leads.
                            await asyncio.sleep(_RANGE_WAIT_MS / 1000)
                            await consumer._client.force_metadata_update()
                    continue
                waits = 0 if batches else waits + 1
                if waits > _RANGE_WAITS:
                    names = ", ".join(
                        f"{tp.topic}/{tp.partition} up to {last}" for tp, last in unread.items()
                    )
                    raise KafkaError(f"records of {names} are not delivered")
                for tp, records in batches.items():
                    beyond.pop(tp, None)
                    for record in records:
                        if record.offset <= unread[tp]:
                            yield record
