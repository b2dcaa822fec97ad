"""A broker, real and modelled, behind the few operations of a history that the product's clients don't have."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol
from unittest.mock import patch

from aiokafka.admin import NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import TopicPartition

from broker.client import name_of, open_admin, open_consumer, records_before
from broker.topics import visible
from schemas.settings import WriterSettings
from schemas.topics import Topic
from tests.eventually import eventually
from tests.integration.simulation.virtual import in_loop
from tests.simulation import kafka_clients
from tests.simulation.kafka import Broker
from tests.simulation.kafka_consumer import Consumer
from tests.simulation.kafka_producer import Producer
from tests.simulation.world import World

PARTITIONS: Final = 2
History = Callable[["Cluster"], Coroutine[Any, Any, Any]]
_COMPACT: Final = {
    "cleanup.policy": "compact",
    # Each record that is a second younger than the first of its segment begins another.
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "86400000",
}
_BROKER: Final = "1"

_SEND: Final = AIOKafkaClient.send


class Cluster(Protocol):
    """A broker with the topics `grouped` and `seen`, both empty, of two partitions."""

    settings: WriterSettings

    async def trim(self, tp: TopicPartition, offset: int) -> None:
        """Remove records before an offset, as retention does."""

    async def compact(self, tp: TopicPartition, until: int) -> None:
        """Compact the records before an offset: the first record and others whose keys have later ones are removed."""

    def lose_answers(self, count: int) -> None:
        """Lose the answers to the next writes: they are stored, and the producer sees its connection break."""

    def lose_requests(self, count: int) -> None:
        """Lose the next writes."""

    def lose_leader(self, lost: bool) -> None:
        """Lose the next write, and remove the leader of its partition; or restore the leader."""

    async def repeat(self) -> None:
        """Let every write so far arrive once more."""


class RealCluster:
    """Topics under a separate prefix on a real broker."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.settings = WriterSettings(
            kafka_bootstrap=bootstrap, topic_prefix=prefix, writer_group=f"{prefix}writer", clickhouse_url=""
        )
        self._answers = 0
        self._requests = 0
        self._loses_leader = False
        self._leaderless = False
        self._writes: list[tuple[Any, Any, dict[str, Any]]] = []

    async def prepare(self) -> None:
        """Create the topics."""
        grouped, seen = name_of(self.settings, Topic.GROUPED), name_of(self.settings, Topic.SEEN)
        async with open_admin(self.settings) as admin:
            await admin.create_topics([
                NewTopic(grouped, PARTITIONS, 1), NewTopic(seen, PARTITIONS, 1, topic_configs=_COMPACT)
            ])  # fmt: skip
            await visible(admin, [grouped, seen])

    async def trim(self, tp: TopicPartition, offset: int) -> None:
        async with open_admin(self.settings) as admin:
            await admin.delete_records({tp: RecordsToDelete(before_offset=offset)})

    async def compact(self, tp: TopicPartition, until: int) -> None:  # noqa: ARG002 - all but the newest segment
        async def first_is_removed() -> bool:
            async with open_consumer(self.settings) as consumer:
                consumer.assign([tp])
                consumer.seek(tp, 0)
                async for record in records_before(consumer, await consumer.end_offsets([tp])):
                    return bool(record.offset > 0)
            return False

        await self._set_broker({"log.cleaner.backoff.ms": "100"})
        try:
            await eventually(first_is_removed)
        finally:
            await self._set_broker({})

    async def _set_broker(self, configs: dict[str, str]) -> None:
        async with open_admin(self.settings) as admin:
            await admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, _BROKER, configs)])

    def lose_answers(self, count: int) -> None:
        self._answers = count

    def lose_requests(self, count: int) -> None:
        self._requests = count

    def lose_leader(self, lost: bool) -> None:
        self._loses_leader, self._leaderless = lost, False

    async def repeat(self) -> None:
        # The clients that wrote may be closed by now: the broker doesn't mind who writes.
        client = AIOKafkaClient(bootstrap_servers=self.settings.kafka_bootstrap)
        await client.bootstrap()
        try:
            for node, request, options in self._writes:
                await _SEND(client, node, request, **options)
        finally:
            await client.close()

    @contextmanager
    def intercepted(self) -> Iterator[None]:
        """While writes can be lost and repeated."""
        leader = ClusterMetadata.leader_for_partition

        async def intercept(client: Any, node: Any, request: Any, **options: Any) -> Any:
            if not type(request).__name__.startswith("ProduceRequest"):
                return await _SEND(client, node, request, **options)
            if self._requests or self._loses_leader:
                self._requests = max(0, self._requests - 1)
                self._leaderless = self._loses_leader
                raise KafkaConnectionError
            self._writes.append((node, request, options))
            answer = await _SEND(client, node, request, **options)
            if self._answers:
                self._answers -= 1
                raise KafkaConnectionError
            return answer

        def lead(metadata: Any, tp: TopicPartition) -> Any:
            return -1 if self._leaderless else leader(metadata, tp)

        with (
            patch.object(AIOKafkaClient, "send", intercept),
            patch.object(ClusterMetadata, "leader_for_partition", lead),
        ):
            yield


class ModelCluster(kafka_clients.Network):
    """The model of a broker, and a network that loses the messages that a history chooses."""

    def __init__(self, world: World) -> None:
        self.settings = WriterSettings(kafka_bootstrap="k:1", topic_prefix="svc.", clickhouse_url="")
        topics = {name_of(self.settings, topic): PARTITIONS for topic in (Topic.GROUPED, Topic.SEEN)}
        super().__init__(world, _RecordingBroker(world, topics))

    async def trim(self, tp: TopicPartition, offset: int) -> None:
        self.broker.log(tp).trim(offset)

    async def compact(self, tp: TopicPartition, until: int) -> None:
        self.broker.log(tp).compact(until)

    def lose_answers(self, count: int) -> None:
        self.broker.answers = count

    def lose_requests(self, count: int) -> None:
        self.broker.requests = count

    def lose_leader(self, lost: bool) -> None:
        self.broker.leaderless = lost

    async def repeat(self) -> None:
        for write in self.broker.writes:
            write()

    broker: "_RecordingBroker"

    def has_leader(self) -> bool:
        return not self.broker.leaderless

    def breaks(self) -> bool:
        broken, self.broker.breaks = self.broker.breaks, False
        return broken


class _RecordingBroker(Broker):
    answers = 0
    requests = 0
    breaks = False
    leaderless = False

    def __init__(self, world: World, topics: dict[str, int]) -> None:
        super().__init__(world, topics)
        self.writes: list[Callable[[], int]] = []

    def produce(self, *arguments: Any) -> int:
        if self.requests or self.leaderless:
            self.requests = max(0, self.requests - 1)
            raise KafkaConnectionError
        self.writes.append(lambda: Broker.produce(self, *arguments))
        first = super().produce(*arguments)
        if self.answers:
            self.answers -= 1
            self.breaks = True
        return first


def on_model(seed: int, history: History) -> Any:
    """The result of a history on the model."""
    world = World(seed)
    cluster = ModelCluster(world)
    with ExitStack() as stack:
        stack.enter_context(patch.object(kafka_clients.Client, "network", cluster, create=True))
        for name, model in (("Consumer", Consumer), ("Producer", Producer), ("Admin", kafka_clients.Admin)):
            stack.enter_context(patch(f"broker.client.{name}", model))
        return in_loop(world, lambda: history(cluster))


def on_broker(bootstrap: str, prefix: str, history: History) -> Any:
    """The result of a history on a real broker."""

    async def play() -> Any:
        cluster = RealCluster(bootstrap, prefix)
        await cluster.prepare()
        with cluster.intercepted():
            return await history(cluster)

    try:
        return asyncio.run(play())
    finally:
        # aiokafka leaves a connection behind whose client is stopped while it connects.
        gc.collect()
