"""A worker of the processors as a process of a world: the product's stages, with Faust's part."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from broker.batch_producer import BatchProducer
from broker.client import new_consumer, topic_names
from broker.errors import KafkaError
from broker.types import RebalanceListener, TopicPartition
from processors.aggregator.aggregator_stage import supersedes
from processors.batch_table import BatchTable, PartitionStore
from processors.changelog import Changelog
from processors.faust_app.agents import Agent
from processors.faust_app.fence import Lease, RebalanceFence
from processors.faust_app.processors_app import LEASE_SHARE, parts_of
from processors.grouper.grouper_stage import IdLookUp, IdsByPartition
from schemas.health import Health
from schemas.projects import ProjectRegistry
from schemas.settings import ProcessorsSettings
from schemas.topics import Topic
from storage.read.events.stored_ids import StoredIds
from storage.shards import shards_of
from tests.simulation.pipeline import METRICS
from tests.simulation.world import World


class _Store(PartitionStore):
    """A store without Faust's service around it."""

    def __init__(self, changelog: Changelog) -> None:
        self.changelog = changelog
        self.__post_init__()


class Table(BatchTable):
    """A table whose store and changelog are the product's.

    Faust's work around them, such as a recovery, is repeated here.
    """

    def __init__(self, topic: str, changelog: Changelog, owner: str | None = None) -> None:
        self._topic = topic
        self._changelog = changelog
        self._owner = owner
        self._open = set()
        self._data = _Store(changelog)

    async def hold(self, partitions: set[int], generation: int) -> None:
        """As `BatchTable.on_rebalance`."""
        self._parts.hold(partitions, generation)
        if self._owner is not None:
            for partition in sorted(partitions - self._open):
                await self._changelog.open(partition, self._owner)
        self._open = partitions

    async def correct(self) -> None:
        """As `BatchTable.on_recovery_completed`."""
        for partition in sorted(self._open):
            await self.write(partition, self._changelog.corrections(partition, self.part(partition)))

    async def read_on(self, consumer: Any, partitions: Iterable[int], generation: int) -> None:
        """Read the changelog from where it was read before."""
        tps = [TopicPartition(self._topic, p) for p in sorted(partitions)]
        ends = await consumer.end_offsets(tps)
        consumer.assign(tps)
        for tp in tps:
            reached = self._parts.persisted_offset(tp)
            consumer.seek(tp, 0 if reached is None else reached + 1)
        unread = set(tps)
        while unread := {tp for tp in unread if await consumer.position(tp) < ends[tp]}:
            for tp, records in (await consumer.getmany(*unread, timeout_ms=500)).items():
                self._parts.read_records(tp.partition, records, generation)


class _Message:
    """A record as Faust gives it to an agent."""

    def __init__(self, record: Any, generation: int) -> None:
        self.partition = record.partition
        self.offset = record.offset
        self.timestamp = record.timestamp / 1000
        self.key = record.key
        self.value = record.value
        self.headers = record.headers
        self.generation_id = generation


class _Event:
    """An event of Faust's."""

    def __init__(
        self, message: _Message, acknowledge: Callable[[TopicPartition, int], None], tp: TopicPartition
    ) -> None:
        self.message = message
        self._acknowledge = acknowledge
        self._tp = tp

    def ack(self) -> None:
        self._acknowledge(self._tp, self.message.offset + 1)


class _CountedLookUp:
    """A look-up of old ids that counts its finds."""

    def __init__(self, look_up: IdLookUp, reached: Counter[str]) -> None:
        self._look_up = look_up
        self._reached = reached

    async def among(self, ids: IdsByPartition) -> set[tuple[int, bytes]]:
        """As `IdLookUp`."""
        found = await self._look_up.among(ids)
        self._reached["old id found stored"] += len(found)
        return found


class _Offsets:
    """The two calls of Faust's consumer that a recovery makes."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    async def earliest_offsets(self, *tps: Any) -> dict[Any, int]:
        plain = [TopicPartition(tp.topic, tp.partition) for tp in tps]
        return dict(zip(tps, (await self._consumer.beginning_offsets(plain)).values(), strict=True))

    async def highwaters(self, *tps: Any) -> dict[Any, int]:
        plain = [TopicPartition(tp.topic, tp.partition) for tp in tps]
        return dict(zip(tps, (await self._consumer.end_offsets(plain)).values(), strict=True))


class Worker(RebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """One worker of the processors."""

    def __init__(
        self,
        world: World,
        settings: ProcessorsSettings,
        partitions: int,
        projects: ProjectRegistry,
        reached: Counter[str],
    ) -> None:
        self._world = world
        self._settings = settings
        self._names = topic_names(settings)
        self._partitions = partitions
        self._projects = projects
        self._reached = reached
        self._failed: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._acknowledged: dict[TopicPartition, int] = {}
        self._has_acknowledged = asyncio.Event()

    async def run(self) -> None:
        """Work until killed. Raises the errors that end a worker."""
        settings, topics = self._settings, self._names
        loop = asyncio.get_running_loop()
        self._failed = loop.create_future()
        self._fence = RebalanceFence()
        self._lease = HeartbeatLease(LEASE_SHARE * settings.kafka_session_seconds, self._world)
        producer = BatchProducer(settings, self._lease.check)
        await producer.start()
        self._seen = Table(
            topics[Topic.SEEN], Changelog(topics[Topic.SEEN], producer), settings.processors_worker
        )
        self._issues = Table(topics[Topic.ISSUES], Changelog(topics[Topic.ISSUES], producer, supersedes))
        stored_ids = _CountedLookUp(StoredIds(shards_of(settings), Health()), self._reached)
        *_, self._recovery, agents = parts_of(
            *(settings, self._partitions, self._seen, self._issues, producer, self._projects),
            *(self._fence, METRICS, stored_ids),
        )
        self._agents = {topics[topic]: agent for topic, agent in agents.items()}
        self._consumer = new_consumer(
            settings,
            group_id=settings.processors_app,
            group_instance_id=f"{settings.processors_app}-{settings.processors_worker}",
        )
        await self._consumer.start()
        self._tables_consumer = new_consumer(settings)
        await self._tables_consumer.start()
        self._consumer.subscribe([topics[Topic.EVENTS], topics[Topic.ISSUE_DELTAS]], listener=self)
        await self._failed

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """As `Processors._revoked`."""
        try:
            await self._fence.stop_batches(self._lease.seconds)
        except TimeoutError as error:
            self._fail(error)
        await self._stop_reading()
        await self._commit()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """As `Processors._assigned` and Faust's recovery."""
        self._lease.renew()
        self._acknowledged.clear()
        await self._recovery.begin(assigned)
        partitions = {tp.partition for tp in assigned}
        self._reading = asyncio.create_task(self._recover_and_read(assigned, partitions))
        self._reading.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _recover_and_read(self, assigned: set[TopicPartition], partitions: set[int]) -> None:
        generation = self._consumer._generation
        for table in (self._seen, self._issues):
            await table.hold(partitions, generation)
            await table.read_on(self._tables_consumer, partitions, generation)
            await table.correct()
        await self._recovery.restore(_Offsets(self._consumer), partitions)
        for tp, offset in self._recovery.next_offsets(assigned).items():
            log = self._issues.part(tp.partition)
            self._reached["deltas are read again"] += (
                tp.topic == self._names[Topic.ISSUE_DELTAS] and not offset and bool(log)
            )
            self._consumer.seek(TopicPartition(*tp), offset)
            self._acknowledge(TopicPartition(*tp), offset)
        self._fence.open = True
        async with asyncio.TaskGroup() as tasks:
            for topic, agent in self._agents.items():
                tps = [tp for tp in assigned if tp.topic == topic]
                if tps:
                    tasks.create_task(self._read(agent, sorted(tps), generation))
            tasks.create_task(self._commit_often())

    async def _read(self, agent: Agent, tps: list[TopicPartition], generation: int) -> None:
        while True:
            taken = await self._consumer.getmany(*tps, timeout_ms=5000, max_records=agent._max_records)
            events = [
                _Event(_Message(record, generation), self._acknowledge, tp)
                for tp, records in taken.items()
                for record in records
            ]
            if events:
                # A batch that has begun ends, also where the group rebalances meanwhile: the fence waits for
                # it. Its failure ends the worker, also where this task was cancelled before it learned of it.
                handling = asyncio.create_task(
                    agent._handle(events, self._consumer._generation)  # type: ignore[arg-type]
                )
                handling.add_done_callback(self._ended)
                await asyncio.shield(handling)

    def _acknowledge(self, tp: TopicPartition, offset: int) -> None:
        self._acknowledged[tp] = offset
        self._has_acknowledged.set()

    async def _commit_often(self) -> None:
        while True:
            await self._has_acknowledged.wait()
            await asyncio.sleep(1.0)
            self._has_acknowledged.clear()
            await self._commit()

    async def _commit(self) -> None:
        assigned = self._consumer.assignment()
        acknowledged = {tp: at for tp, at in self._acknowledged.items() if tp in assigned}
        try:
            await self._consumer.commit(acknowledged)
        except KafkaError:
            self._has_acknowledged.set()
        else:
            for tp, at in acknowledged.items():
                if self._acknowledged.get(tp) == at:
                    del self._acknowledged[tp]

    async def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


class HeartbeatLease(Lease):
    """A lease that knows when the last heartbeat was answered, without one in the agenda for each."""

    def __init__(self, seconds: float, world: World) -> None:
        super().__init__(seconds)
        self._world = world
        self._process = world._current().process

    def check(self) -> None:
        """As heartbeats would have renewed it. After a sleep of the machine the clock shows no silence."""
        if self._process.has_slept:
            return
        now = self._world.now
        last = max((s for s in self._process.silences if s.begin <= now), default=None, key=lambda s: s.end)
        if last is None or now - last.end > 0.5:
            self._renewed = now
        elif self._renewed is not None:
            self._renewed = max(self._renewed, last.begin - 1.0)
        super().check()
