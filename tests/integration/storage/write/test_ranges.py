"""Ranges of `grouped` that are read again, of any partitions."""

from collections.abc import Mapping
from unittest.mock import Mock

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete

from broker import client
from broker.client import open_admin
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


async def read(source: GroupedSource, spans: Mapping[int, tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    async for record in source.ranges(spans):
        found.setdefault(record.partition, []).append(record.offset)
    return found


async def test_ranges_of_all_partitions_are_read_by_one_client(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, made = await filled(stage), Mock(wraps=client.new_consumer)
    monkeypatch.setattr(client, "new_consumer", made)
    assert await read(source, {0: (2, 5), 1: (0, 9), 2: (9, 9)}) == {0: [2, 3, 4, 5], 1: [*range(10)], 2: [9]}
    assert made.call_count == 1
    assert await read(source, {}) == {}
    assert made.call_count == 1


async def test_records_past_the_retention_are_missing_and_later_ones_are_read(stage: Stage) -> None:
    source = await filled(stage)
    async with open_admin(stage.settings) as admin:
        await admin.delete_records({TopicPartition(stage.topic, 0): RecordsToDelete(before_offset=4)})
    assert await read(source, {0: (0, 5), 1: (3, 4)}) == {0: [4, 5], 1: [3, 4]}


async def test_a_range_behind_the_end_of_a_topic_that_was_created_again_is_empty(stage: Stage) -> None:
    assert await read(await filled(stage), {0: (50, 60), 1: (8, 9)}) == {1: [8, 9]}
