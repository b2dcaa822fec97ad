"""Whether the consumer groups of the pipeline work: who takes part, how much waits, and whether it is handled."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiokafka.errors import for_code
from msgspec import Struct

from broker.client import LOADING_PAUSES_SECONDS, committed_offsets, name_of
from broker.cluster import LOADING
from broker.consumer_lag import clients, end_offsets, lags_of
from broker.types import Admin, Consumer, TopicPartition
from schemas.settings import KafkaSettings
from schemas.topics import Topic

_PAUSE_SECONDS: Final = 0.5


class GroupProgress(Struct, frozen=True):
    """A group's members by their addresses, and the records that waited for it in each partition.

    `idle` are those partitions in which it has handled none since. `started` says whether it ever committed.
    """

    group: str
    hosts: list[str]
    waiting: dict[TopicPartition, int]
    idle: list[TopicPartition]
    started: bool


async def progress(
    settings: KafkaSettings, groups: Mapping[str, list[Topic]], seconds: float
) -> list[GroupProgress]:
    """Watch groups until each has handled something in every partition where records wait, or for so many seconds.

    Raises KafkaError.
    """
    for pause in LOADING_PAUSES_SECONDS:
        # A cluster's first group has to wait for its coordinator.
        with suppress(*LOADING):
            return await _progress(settings, groups, seconds)
        await asyncio.sleep(pause)
    return await _progress(settings, groups, seconds)


async def _progress(
    settings: KafkaSettings, groups: Mapping[str, list[Topic]], seconds: float
) -> list[GroupProgress]:
    async with clients(settings) as (admin, consumer):
        hosts = {group: await _hosts(admin, group) for group in groups}
        ends = {
            group: {
                partition: end
                for topic in topics
                for partition, end in (await end_offsets(admin, consumer, name_of(settings, topic))).items()
            }
            for group, topics in groups.items()
        }
        started = {
            group: any(
                one.offset >= 0 for one in (await committed_offsets(admin, group, ends[group])).values()
            )
            for group in groups
        }
        waiting = {group: await _waiting(admin, consumer, group, ends[group]) for group in groups}
        idle = {group: list(records) for group, records in waiting.items()}
        deadline = time.monotonic() + seconds
        while any(idle[group] for group in groups if hosts[group]) and time.monotonic() < deadline:
            await asyncio.sleep(_PAUSE_SECONDS)
            for group, partitions in idle.items():
                left = await lags_of(admin, consumer, group, {tp: ends[group][tp] for tp in partitions})
                idle[group] = [tp for tp in partitions if left[tp] == waiting[group][tp]]
    return [
        GroupProgress(group, hosts[group], waiting[group], idle[group], started[group]) for group in groups
    ]


async def _waiting(
    admin: Admin, consumer: Consumer, group: str, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    return {tp: lag for tp, lag in (await lags_of(admin, consumer, group, ends)).items() if lag}


async def _hosts(admin: Admin, group: str) -> list[str]:
    """The addresses from which members are connected, one for each member."""
    [answer] = await admin.describe_consumer_groups([group])
    [described] = answer.to_object()["groups"]
    if described["error_code"]:
        raise for_code(described["error_code"])(group)
    return [member["client_host"].lstrip("/") for member in described["members"]]
