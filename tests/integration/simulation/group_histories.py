"""Short histories of compaction, of a broken producer, and of a group's members."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition
from msgspec.structs import replace

from broker.client import name_of, open_admin, open_consumer, open_producer, records_before
from broker.topics import empty_topic
from rebuild.tables import count_members
from schemas.topics import Topic
from storage.exactly_once.block_plan import NoBlock
from storage.write.source import GroupedSource, Listener
from tests.eventually import eventually
from tests.integration.simulation.clusters import PARTITIONS, Cluster, History

_OLD_MS: Final = 1_700_000_000_000
_QUIET_SECONDS: Final = 30.0
"""A session without a heartbeat during a history: members learn of each other by their requests."""


async def a_compacted_topic(cluster: Cluster) -> Any:
    """The records after compaction, as read from each offset: the last record of each key, and its tombstone."""
    tps = [
        TopicPartition(name_of(cluster.settings, Topic.SEEN), partition) for partition in range(PARTITIONS)
    ]
    batches: list[list[tuple[bytes, bytes | None]]] = [
        [(b"a", b"1"), (b"b", b"1")],
        [(b"a", b"2"), (b"a", b"3"), (b"c", b"1")],
        [(b"b", None), (b"d", b"1")],
        [(b"c", b"2"), (b"d", b"2"), (b"c", b"3")],
        # The newest segment, which is not compacted.
        [(b"a", b"4"), (b"a", b"5"), (b"e", b"1"), (b"e", None)],
    ]
    found: list[Any] = []
    async with (
        open_producer(cluster.settings) as producer,
        open_consumer(cluster.settings, fetch_max_wait_ms=20) as consumer,
    ):
        for tp in tps:
            for number, records in enumerate(batches[tp.partition :]):
                batch = producer.create_batch()
                for key, value in records:
                    batch.append(key=key, value=value, timestamp=_OLD_MS + 10_000 * number, headers=[])
                last = await (await producer.send_batch(batch, tp.topic, partition=tp.partition))
            await cluster.compact(tp, last.offset)
        consumer.assign(tps)
        begins, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        for tp in tps:
            for start in range(ends[tp] + 1):
                consumer.seek(tp, start)
                read = [record async for record in records_before(consumer, {tp: ends[tp]})]
                found.append((tp.partition, start, [(r.offset, r.key, r.value) for r in read]))
        return found, [(begins[tp], ends[tp]) for tp in tps]


async def a_producer_that_is_not_answered(cluster: Cluster) -> Any:
    """It repeats a batch beyond its timeout, unless the partition has no leader.

    Without a leader, its next batches are out of sequence.
    """
    topic = name_of(cluster.settings, Topic.GROUPED)
    answers: list[Any] = []
    async with open_producer(cluster.settings, request_timeout_ms=1_000) as producer:
        cluster.lose_requests(6)
        answers.append(await _answer(producer.send_and_wait(topic, b"1", partition=0)))
        cluster.lose_leader(True)
        answers.append(await _answer(producer.send_and_wait(topic, b"2", partition=0)))
        cluster.lose_leader(False)
        answers += [await _answer(producer.send_and_wait(topic, b"3", partition=0)) for _ in range(2)]
    async with open_producer(cluster.settings) as producer:
        await producer.send_and_wait(topic, b"4", partition=0)
    await cluster.repeat()
    tp = TopicPartition(topic, 0)
    async with open_consumer(cluster.settings) as consumer:
        consumer.assign([tp])
        ends = await consumer.end_offsets([tp])
        return answers, [(r.offset, r.value) async for r in records_before(consumer, ends)]


async def _answer(work: Any) -> str:
    try:
        await work
    except KafkaError as error:
        return type(error).__name__
    return ""


class Member:
    """A writer's membership in its group."""

    def __init__(self, cluster: Cluster, name: str, session: float = 10.0) -> None:
        self.source = GroupedSource(
            replace(cluster.settings, writer_worker=name, kafka_session_seconds=session)
        )
        self.assignments: list[set[int]] = []
        self.revocations = 0

    async def start(self, times: int = 1) -> "Member":
        """Join, and wait for an assignment."""
        await self.source.start(Listener(self._revoked, self._assigned))
        await self.assigned(times)
        return self

    async def assigned(self, times: int) -> set[int]:
        """The partitions, once they were assigned so often."""
        await eventually(lambda: len(self.assignments) >= times)
        return self.assignments[-1]

    async def _revoked(self) -> None:
        self.revocations += 1

    async def _assigned(self, partitions: set[int]) -> None:
        self.assignments.append(set(partitions))

    async def commit(self, offsets: Mapping[int, int]) -> str:
        """Commit; "" or the name of the error."""
        states = {partition: (offset, NoBlock()) for partition, offset in offsets.items()}
        return await _answer(self.source.commit(states))

    async def committed(self) -> Any:
        """The group's committed offsets."""
        commits = await self.source.committed(set(range(PARTITIONS)))
        return sorted((partition, commit.offset) for partition, commit in commits.items())


async def a_member_under_the_name_of_another(cluster: Cluster) -> Any:
    """It gets the other's partitions immediately, and the other's commits are refused. That one rejoins, and so on."""
    first = await Member(cluster, "0", _QUIET_SECONDS).start()
    answers: list[Any] = [list(first.assignments), await first.committed(), await first.commit({0: 5})]
    second = await Member(cluster, "0", _QUIET_SECONDS).start()
    answers += [list(second.assignments), await second.committed(), await second.commit({1: 7})]
    answers += [await first.commit({0: 6, 1: 6}), await first.assigned(2), await second.commit({1: 8})]
    answers.append(await first.committed())
    await _stop(first, second)
    return answers


async def a_member_of_an_old_generation(cluster: Cluster) -> Any:
    """Its commit is refused."""
    member = await Member(cluster, "0").start()
    consumer = member.source._consumer
    # The model's consumer is its own coordinator.
    coordinator = consumer._coordinator
    name = "generation" if hasattr(coordinator, "generation") else "_generation"
    setattr(coordinator, name, getattr(coordinator, name) - 1)
    refused = await member.commit({0: 5})
    await member.source.stop()
    return refused, await member.committed()


async def a_second_member(cluster: Cluster) -> Any:
    """Both share the partitions, and each can commit only those that it has.

    A restart of one under its name changes nothing for the other.
    """
    first = await Member(cluster, "0").start()
    second = await Member(cluster, "1").start()
    mine, other = await first.assigned(2), second.assignments[-1]
    answers: list[Any] = [sorted([*mine, *other]), len(mine), first.revocations]
    answers += [await first.commit(dict.fromkeys(mine, 3)), await first.commit(dict.fromkeys(other, 4))]
    answers += [await first.committed() == [(partition, 3) for partition in mine]]
    await second.source.stop()
    again = await Member(cluster, "1").start()
    answers += [
        again.assignments == [other],
        len(first.assignments),
        await first.commit(dict.fromkeys(mine, 5)),
    ]
    answers += [await again.commit(dict.fromkeys(other, 6)), len(await again.committed())]
    await _stop(first, again)
    return answers


async def an_emptied_table(cluster: Cluster) -> Any:
    """A table is emptied as `svc rebuild` does, which looks for members of the group first.

    A static member stays in the group when it stops.
    """
    topic = name_of(cluster.settings, Topic.SEEN)
    tp = TopicPartition(topic, 0)
    async with open_producer(cluster.settings) as producer, open_admin(cluster.settings) as admin:
        counts = [await count_members(admin, cluster.settings.writer_group)]
        member = await Member(cluster, "0").start()
        counts.append(await count_members(admin, cluster.settings.writer_group))
        await member.source.stop()
        counts.append(await count_members(admin, cluster.settings.writer_group))
        for value in (b"1", b"2", b"3"):
            await producer.send_and_wait(topic, value, key=b"k", partition=0)
        counts.append(await empty_topic(cluster.settings, topic))
        await producer.send_and_wait(topic, b"4", key=b"k", partition=0)
        async with open_consumer(cluster.settings) as consumer:
            consumer.assign([tp])
            await consumer.seek_to_beginning(tp)
            ends = await consumer.end_offsets([tp])
            read = [(r.offset, r.value) async for r in records_before(consumer, ends)]
            return counts, (await consumer.beginning_offsets([tp]))[tp], ends[tp], read


async def _stop(*members: Member) -> None:
    await asyncio.gather(*(member.source.stop() for member in members))


HISTORIES: Final[Mapping[str, History]] = {
    history.__name__.replace("_", " "): history
    for history in (
        a_compacted_topic,
        a_producer_that_is_not_answered,
        a_member_under_the_name_of_another,
        a_member_of_an_old_generation,
        a_second_member,
        an_emptied_table,
    )
}
