"""Random short histories of a partition: writes, lost answers, retention, compaction, reads and commits."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Final

from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from broker.batch_producer import BatchProducer
from broker.client import (
    committed_offsets,
    name_of,
    new_consumer,
    open_admin,
    open_consumer,
    open_producer,
    records_before,
)
from broker.message import Message
from broker.types import Consumer
from schemas.topics import Topic
from tests.integration.simulation.clusters import PARTITIONS, Cluster, History

_KINDS: Final = (
    *("batch", "batch", "batch", "record", "lost answer", "lost request", "repeat", "trim", "trim"),
    *("read", "read", "beyond", "commit", "commit", "committed", "of no group"),
)
_OPERATIONS: Final = 14
_SOON: Final = {"fetch_max_wait_ms": 20}
_KEYS: Final = (b"a", b"b", b"c", b"d")


class Session:
    """The clients of a history on one broker."""

    def __init__(self, cluster: Cluster, producer: BatchProducer, consumer: Consumer) -> None:
        self.cluster = cluster
        self.settings = cluster.settings
        self.producer = producer
        self._consumer = consumer
        self.topic = name_of(cluster.settings, Topic.GROUPED)
        self.partitions = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]

    async def bounds(self) -> list[Any]:
        """The first and the next offset of each partition."""
        begins = await self._consumer.beginning_offsets(self.partitions)
        ends = await self._consumer.end_offsets(self.partitions)
        return [(begins[tp], ends[tp]) for tp in self.partitions]

    async def read(self, partition: int, offset: int, reset: str) -> Any:
        """The records of a consumer from an offset on, and its next position; or the name of the error."""
        tp = self.partitions[partition]
        async with open_consumer(self.settings, auto_offset_reset=reset, **_SOON) as consumer:
            consumer.assign([tp])
            consumer.seek(tp, offset)
            ends = await consumer.end_offsets([tp])
            records = []
            try:
                # One beyond the end is told by the first read.
                for got in (await consumer.getmany(tp, timeout_ms=300)).values():
                    records += got
                async for record in records_before(consumer, ends):
                    records.append(record)
            except KafkaError as error:
                return type(error).__name__
            return [(r.offset, r.key, r.value, tuple(r.headers)) for r in records], await consumer.position(
                tp
            )


Operation = Callable[[Session], Awaitable[Any]]


def random_operations(seed: int) -> list[tuple[str, Operation]]:
    """The operations of a seed."""
    random = Random(seed)
    kinds = ["batch", "batch", *random.choices(_KINDS, k=_OPERATIONS)]
    return [(kind, _operation(kind, random, number)) for number, kind in enumerate(kinds)]


def _operation(kind: str, random: Random, number: int) -> Operation:
    partition, offset = random.randrange(PARTITIONS), random.randrange(12)
    reset = random.choice(("none", "earliest"))
    messages = [
        Message(random.choice(_KEYS), f"{number}/{n}".encode(), (("n", bytes([n])),))
        for n in range(random.randint(1, 4))
    ]

    async def write(session: Session) -> Any:
        session.cluster.lose_answers(int(kind == "lost answer"))
        session.cluster.lose_requests(int(kind == "lost request"))
        return await session.producer.write(session.topic, partition, messages)

    async def beyond(session: Session) -> Any:
        _, end = (await session.bounds())[partition]
        return await session.read(partition, end + 1, reset)

    operations: dict[str, Operation] = {
        "record": lambda session: _write_record(session, partition),
        "repeat": lambda session: session.cluster.repeat(),
        "trim": lambda session: _trim(session, partition, offset % 4),
        "read": lambda session: session.read(partition, offset, reset),
        "beyond": beyond,
        "commit": lambda session: _commit(session, partition, offset, f"m{number}"),
        "committed": lambda session: _committed(session, "writer"),
        "of no group": lambda session: _committed(session, "unknown"),
    }
    return operations.get(kind, write)


async def _write_record(session: Session, partition: int) -> int:
    async with open_producer(session.settings) as producer:
        done = await producer.send_and_wait(session.topic, b"v", key=b"k", partition=partition)
    return int(done.offset)


async def _trim(session: Session, partition: int, count: int) -> None:
    begin, end = (await session.bounds())[partition]
    await session.cluster.trim(session.partitions[partition], min(begin + count, end))


async def _commit(session: Session, partition: int, offset: int, metadata: str) -> None:
    consumer = new_consumer(session.settings, group_id=session.settings.topic_prefix + "writer")
    await consumer.start()
    try:
        consumer.assign(session.partitions)
        await consumer.commit({session.partitions[partition]: OffsetAndMetadata(offset, metadata)})
    finally:
        await consumer.stop()


async def _committed(session: Session, group: str) -> list[Any]:
    async with open_admin(session.settings) as admin:
        commits = await committed_offsets(admin, session.settings.topic_prefix + group, session.partitions)
    return [(commits[tp].offset, commits[tp].metadata) for tp in session.partitions]


def play(operations: list[tuple[str, Operation]]) -> History:
    """A history: of each operation its answer, and the bounds of the partitions afterwards."""

    async def history(cluster: Cluster) -> list[Any]:
        async with AsyncExitStack() as stack:
            producer = BatchProducer(cluster.settings)
            await producer.start()
            stack.push_async_callback(producer.stop)
            consumer = await stack.enter_async_context(open_consumer(cluster.settings, **_SOON))
            session = Session(cluster, producer, consumer)
            return [
                (kind, await operation(session), await session.bounds()) for kind, operation in operations
            ]

    return history
