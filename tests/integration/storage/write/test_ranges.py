"""Ranges of `grouped` that are read again, of any partitions."""

from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete

from broker import client
from broker.client import open_admin
from broker.errors import OffsetOutOfRangeError
from storage.write import source
from storage.write.source import GroupedSource
from tests.integration.storage.grouped import Stage

RECORDS = 10


async def filled(stage: Stage) -> GroupedSource:
    """A topic with ten records in each partition."""
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap) as producer:
        for number in range(RECORDS * stage.settings.topic_partitions):
            await producer.send_and_wait(
                stage.topic, b"x", partition=number % stage.settings.topic_partitions
            )
    return GroupedSource(stage.settings)


async def read(grouped: GroupedSource, spans: Mapping[int, tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    async for record in grouped.ranges(spans):
        found.setdefault(record.partition, []).append(record.offset)
    return found


async def test_ranges_of_all_partitions_are_read_by_one_client(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped, made = await filled(stage), Mock(wraps=client.new_consumer)
    monkeypatch.setattr(client, "new_consumer", made)
    assert await read(grouped, {0: (2, 5), 1: (0, 9), 2: (9, 9)}) == {
        0: [2, 3, 4, 5],
        1: [*range(10)],
        2: [9],
    }
    assert made.call_count == 1
    assert await read(grouped, {}) == {}
    assert made.call_count == 1


async def test_records_past_the_retention_are_missing_and_later_ones_are_read(stage: Stage) -> None:
    grouped = await filled(stage)
    async with open_admin(stage.settings) as admin:
        await admin.delete_records({TopicPartition(stage.topic, 0): RecordsToDelete(before_offset=4)})
    assert await read(grouped, {0: (0, 5), 1: (3, 4)}) == {0: [4, 5], 1: [3, 4]}


async def test_a_range_behind_the_end_of_a_topic_that_was_created_again_is_empty(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_BEYOND_SECONDS", 0.5)
    assert await read(await filled(stage), {0: (50, 60), 1: (8, 9), 2: (70, 80)}) == {1: [8, 9]}


async def test_records_that_a_former_leader_does_not_have_are_read_from_the_present_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, former = AIOKafkaConsumer.getmany, iter(range(2))

    async def getmany(consumer: AIOKafkaConsumer, *partitions: TopicPartition, **options: Any) -> Any:
        if next(former, None) is not None:
            raise OffsetOutOfRangeError(dict.fromkeys(partitions, 2))
        return await answers(consumer, *partitions, **options)

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", getmany)
    assert await read(await filled(stage), {0: (2, 5)}) == {0: [2, 3, 4, 5]}
