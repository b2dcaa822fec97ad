"""Output of the processors, read by a consumer that compares positions."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from msgspec.structs import replace

from schemas.chunks import GroupedRecord, decode_chunk, decode_grouped
from schemas.ids import hex64, issue_id
from schemas.issues import Activity, IssueRecord, Outcome, decode_activity, decode_issue, decode_outcomes

Record: TypeAlias = ConsumerRecord[bytes, bytes]


async def read(bootstrap: str, topic: str) -> list[Record]:
    """All records of a topic, by partition."""
    async with reading(bootstrap, topic) as more:
        return await more()


@asynccontextmanager
async def reading(bootstrap: str, topic: str) -> AsyncIterator[Callable[[], Awaitable[list[Record]]]]:
    """Gives a function that returns the records since its last call, at first all of them."""
    consumer: AIOKafkaConsumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=8 << 20,
    )
    await consumer.start()
    try:
        await consumer._client.force_metadata_update()
        consumer._client.add_topic(topic)
        await consumer._client.force_metadata_update()
        places = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(places)

        async def more() -> list[Record]:
            ends = await consumer.end_offsets(places)
            found: list[Record] = []
            while any([await consumer.position(partition) < end for partition, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += records
            return found

        yield more
    finally:
        await consumer.stop()


async def grouped_once(bootstrap: str, prefix: str) -> list[GroupedRecord]:
    """Records of `grouped` without repeats, with their chunks: each source partition's offsets only grow."""
    sources = {(r.partition, r.offset): r.value for r in await read(bootstrap, f"{prefix}events")}
    last: dict[int, int] = {}
    found = []
    for record in await read(bootstrap, f"{prefix}grouped"):
        grouped = decode_grouped(record.value)
        assert grouped.partition == record.partition
        if grouped.offset > last.get(grouped.partition, -1):
            last[grouped.partition] = grouped.offset
            found.append(replace(grouped, chunk=sources[grouped.partition, grouped.offset]))
    return found


def events_of(records: list[GroupedRecord]) -> Counter[tuple[int, bytes]]:
    """How often each (project, id) is in the records."""
    found: Counter[tuple[int, bytes]] = Counter()
    for record in records:
        events = decode_chunk(record.chunk)
        found.update((events[i].project, events[i].id) for i in record.kept)
    return found


def issues_of(records: list[GroupedRecord]) -> Counter[str]:
    """Expected events of each issue, counted from the forwarded ones."""
    return Counter(
        hex64(issue_id(record.projects[index], record.groupings[index].fingerprint))
        for record in records
        for index in record.grouping_of
    )


async def issues(bootstrap: str, topic: str) -> dict[str, IssueRecord]:
    """The last state of each issue."""
    return states(await read(bootstrap, topic))


def states(records: Iterable[Record]) -> dict[str, IssueRecord]:
    """The last state of each issue among some records."""
    return {r.key.decode(): decode_issue(r.value) for r in records if r.value}


async def activities(bootstrap: str, topic: str) -> list[Activity]:
    """All changes, repeats included."""
    return [decode_activity(r.value) for r in await read(bootstrap, topic)]


async def outcomes(bootstrap: str, topic: str) -> Counter[str]:
    """Events by outcome, without repeats."""
    rows: dict[tuple[object, ...], Outcome] = {}
    for record in await read(bootstrap, topic):
        for one in decode_outcomes(record.value):
            key = (one.project_id, one.minute, one.sdk, one.outcome, one.reason, one.source, one.sequence)
            assert rows.setdefault(key, one) == one
    found: Counter[str] = Counter()
    for one in rows.values():
        found[one.outcome] += one.count
    return found
