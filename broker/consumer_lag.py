"""Whether the pipeline has read its topics to their ends: figures of one that hasn't differ because events are under way."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from broker.client import administering, committed_offsets, name_of, reading
from broker.types import Admin, Consumer, TopicPartition
from schemas.settings import KafkaSettings
from schemas.topics import Topic

_PAUSE_SECONDS: Final = 0.2


class ConsumerLag(Struct, frozen=True, rename="camel"):
    """Records of a topic that a consumer group hasn't committed yet."""

    group: str
    topic: str
    records: int


def readers(processors: str, writer: str) -> dict[str, list[Topic]]:
    """The consumer groups of the pipeline, given their settings' names, and what each reads."""
    return {
        processors: [Topic.EVENTS, Topic.ISSUE_DELTAS],
        writer: [Topic.GROUPED],
        f"{writer}-records": [Topic.ISSUES, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES],
    }


async def lags(settings: KafkaSettings, groups: Mapping[str, list[Topic]]) -> list[ConsumerLag]:
    """The groups that are behind, and by how much. Raises KafkaError."""
    async with _asking(settings) as (admin, consumer):
        found = []
        for group, topics in groups.items():
            for topic in topics:
                name = name_of(settings, topic)
                behind = await _behind(admin, consumer, group, await _ends(admin, consumer, name))
                if behind:
                    found.append(ConsumerLag(group=group, topic=name, records=behind))
        return found


async def passed(
    settings: KafkaSettings, groups: Mapping[str, list[Topic]], seconds: float
) -> ConsumerLag | None:
    """Wait until what the topics hold is read, however much comes after it: one topic after the other, in their order.

    The first that isn't after `seconds`, or None. Raises KafkaError.
    """
    limit = time.monotonic() + seconds
    async with _asking(settings) as (admin, consumer):
        for group, topics in groups.items():
            for topic in topics:
                name = name_of(settings, topic)
                ends = await _ends(admin, consumer, name)
                while behind := await _behind(admin, consumer, group, ends):
                    if time.monotonic() > limit:
                        return ConsumerLag(group=group, topic=name, records=behind)
                    await asyncio.sleep(_PAUSE_SECONDS)
    return None


@asynccontextmanager
async def _asking(settings: KafkaSettings) -> AsyncIterator[tuple[Admin, Consumer]]:
    async with administering(settings) as admin, reading(settings) as consumer:
        yield admin, consumer


async def _ends(admin: Admin, consumer: Consumer, topic: str) -> dict[TopicPartition, int]:
    described = await admin.describe_topics([topic])
    places = [TopicPartition(topic, p["partition"]) for p in described[0]["partitions"]]
    ends: dict[TopicPartition, int] = await consumer.end_offsets(places) if places else {}
    return ends


async def _behind(admin: Admin, consumer: Consumer, group: str, ends: Mapping[TopicPartition, int]) -> int:
    if not ends:
        return 0
    begins = await consumer.beginning_offsets(list(ends))
    committed = await committed_offsets(admin, group, ends)
    # Without a commit a group starts at the beginning; an end without records left has nothing to be read.
    return sum(max(0, end - max(committed[p].offset, begins[p])) for p, end in ends.items())
