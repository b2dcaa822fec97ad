"""The lag of the pipeline's consumer groups: counts of different stages only agree without lag."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import for_code
from msgspec import Struct

from broker.client import committed_offsets, name_of, open_admin, open_consumer
from broker.rights import record_groups
from broker.types import Admin, Consumer, TopicPartition
from schemas.settings import KafkaSettings, PipelineSettings
from schemas.topics import Topic

_PAUSE_SECONDS: Final = 0.2


class ConsumerLag(Struct, frozen=True, rename="camel"):
    """The number of a topic's records that a consumer group hasn't committed."""

    group: str
    topic: str
    records: int


def readers(processors: str, writer: str, shards: int = 1) -> dict[str, list[Topic]]:
    """The consumer groups of the pipeline by their configured names, and the topics of each."""
    records = [Topic.ISSUES, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES]
    return {
        processors: [Topic.EVENTS, Topic.ISSUE_DELTAS],
        writer: [Topic.GROUPED],
        **dict.fromkeys(record_groups(writer, shards), records),
    }


def readers_of(settings: PipelineSettings) -> dict[str, list[Topic]]:
    """The same by the settings."""
    return readers(settings.processors_app, settings.writer_group, max(1, len(settings.shard_urls)))


async def lags(settings: KafkaSettings, groups: Mapping[str, list[Topic]]) -> list[ConsumerLag]:
    """Every topic with lag, by group. Raises KafkaError."""
    async with clients(settings) as (admin, consumer):
        lagging = []
        for group, topics in groups.items():
            for topic in topics:
                name = name_of(settings, topic)
                records = await _lag(admin, consumer, group, await end_offsets(admin, consumer, name))
                if records:
                    lagging.append(ConsumerLag(group=group, topic=name, records=records))
        return lagging


async def passed(
    settings: KafkaSettings,
    groups: Mapping[str, list[Topic]],
    seconds: float,
    pause_seconds: float = _PAUSE_SECONDS,
) -> ConsumerLag | None:
    """Wait until the groups have read each topic, in order, up to its end at that moment.

    None, or the first topic with lag after `seconds`. Raises KafkaError.
    """
    deadline = time.monotonic() + seconds
    async with clients(settings) as (admin, consumer):
        for group, topics in groups.items():
            for topic in topics:
                name = name_of(settings, topic)
                ends = await end_offsets(admin, consumer, name)
                while records := await _lag(admin, consumer, group, ends):
                    if time.monotonic() > deadline:
                        return ConsumerLag(group=group, topic=name, records=records)
                    await asyncio.sleep(pause_seconds)
    return None


async def partitions_without_member(settings: KafkaSettings, group: str, topic: Topic) -> dict[int, int]:
    """The partitions of a topic that no member of the group reads, each with the number of records that wait.

    Empty while the group has no members, or distributes its partitions. Raises KafkaError.
    """
    async with clients(settings) as (admin, consumer):
        ends = await end_offsets(admin, consumer, name_of(settings, topic))
        [answer] = await admin.describe_consumer_groups([group])
        [described] = answer.to_object()["groups"]
        if described["state"] != "Stable":
            return {}
        left = {tp: end for tp, end in ends.items() if tp not in assigned(described["members"])}
        return {
            tp.partition: records for tp, records in (await lags_of(admin, consumer, group, left)).items()
        }


def no_member_message(topic: str, lags: Mapping[int, int]) -> str:
    """A sentence about partitions that have no reader; empty if there are none. Pure.

    `lags` has the number of records that wait in each.
    """
    if not lags:
        return ""
    names, records = ", ".join(map(str, sorted(lags))), sum(lags.values())
    return f"no member of the group reads partitions {names} of {topic}, where {records} records wait"


def assigned(members: Iterable[Mapping[str, Any]]) -> set[TopicPartition]:
    """The partitions of the members of a group, as the broker describes them."""
    encoded = [member["member_assignment"] for member in members]
    return {tp for each in encoded if each for tp in ConsumerProtocol.ASSIGNMENT.decode(each).partitions()}


@asynccontextmanager
async def clients(settings: KafkaSettings) -> AsyncIterator[tuple[Admin, Consumer]]:
    """The clients that the functions below ask. Raises KafkaError."""
    async with open_admin(settings) as admin, open_consumer(settings) as consumer:
        yield admin, consumer


async def end_offsets(admin: Admin, consumer: Consumer, topic: str) -> dict[TopicPartition, int]:
    """The end of each partition of a topic. Raises KafkaError."""
    described = await admin.describe_topics([topic])
    if not described[0]["partitions"]:
        # Without the right to describe it, nothing would look behind.
        raise for_code(described[0]["error_code"])(topic)
    partitions = [TopicPartition(topic, p["partition"]) for p in described[0]["partitions"]]
    ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
    return ends


async def _lag(admin: Admin, consumer: Consumer, group: str, ends: Mapping[TopicPartition, int]) -> int:
    return sum((await lags_of(admin, consumer, group, ends)).values())


async def lags_of(
    admin: Admin, consumer: Consumer, group: str, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The records before the ends that a group hasn't committed, by partition. Raises KafkaError."""
    if not ends:
        return {}
    begins = await consumer.beginning_offsets(list(ends))
    committed = await committed_offsets(admin, group, ends)
    # Without a commit a group starts at the beginning; deleted records don't count.
    return {p: max(0, end - max(committed[p].offset, begins[p])) for p, end in ends.items()}
