"""Records of `events` that are read for records of `grouped`."""

from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import ConsumerRecord

from broker.client import open_admin
from schemas.chunks import REPLAYED_HEADER, SOURCE_HEADER, GroupedRecord, encode_chunk, encode_grouped
from storage.exactly_once import source_values
from storage.exactly_once.source_values import MAX_GAP, SourceValues, open_source_values
from tests.integration.storage.grouped import Stage

RECORDS = 3 * MAX_GAP


def decisions(*offsets: int, partition: int = 0) -> list[ConsumerRecord]:
    """Records of `grouped` about these records of a partition of `events`."""
    return [of_grouped(partition, [(SOURCE_HEADER, b"%d/%d" % (partition, offset))]) for offset in offsets]


def of_grouped(partition: int, headers: list[tuple[str, bytes]], value: bytes = b"") -> ConsumerRecord:
    return ConsumerRecord("grouped", partition, 0, 0, 0, None, value, None, 0, 0, tuple(headers))


def values(*offsets: int) -> list[bytes]:
    return [b"%d" % offset for offset in offsets]


@pytest.fixture
async def sources(stage: Stage) -> AsyncIterator[SourceValues]:
    """A reader of two partitions; the first has records, of which each value is its offset."""
    topic = f"{stage.settings.topic_prefix}events"
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send(topic, b"%d" % number, partition=0)
    async with open_source_values(stage.settings, [0, 1]) as sources:
        yield sources


async def test_sources_are_read_in_order_again_and_across_gaps(sources: SourceValues) -> None:
    assert await sources.of(decisions(0, 1, 2)) == values(0, 1, 2)
    assert await sources.of(decisions(4, 9, 9, RECORDS - 1)) == values(4, 9, 9, RECORDS - 1)
    assert await sources.of(decisions(8, 3)) == values(8, 3)
    assert await sources.of(decisions(0, MAX_GAP + 1)) == values(0, MAX_GAP + 1)


async def test_a_source_that_has_expired_or_is_not_there_is_none(
    sources: SourceValues, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_values, "_SILENT_SECONDS", 1.5)
    monkeypatch.setattr(source_values, "_SILENT_ANSWERS", 2)
    expired = TopicPartition(f"{stage.settings.topic_prefix}events", 0)
    async with open_admin(stage.settings) as admin:
        await admin.delete_records({expired: RecordsToDelete(before_offset=5)})
    assert await sources.of(decisions(3, 4, 5, 6)) == [None, None, *values(5, 6)]
    assert await sources.of(decisions(3, 4)) == [None, None]
    assert await sources.of(decisions(RECORDS - 1, RECORDS)) == [*values(RECORDS - 1), None]
    assert await sources.of(decisions(7, partition=1)) == [None]


async def test_a_record_that_was_put_back_has_a_source_unless_it_has_its_events(
    sources: SourceValues,
) -> None:
    headers = [(SOURCE_HEADER, b"0/7"), (REPLAYED_HEADER, b"whole")]
    whole = encode_grouped(GroupedRecord(0, 7, 0, [], [], [], [], {}, [], encode_chunk([])))
    assert await sources.of([of_grouped(0, headers), of_grouped(0, headers, whole), of_grouped(0, [])]) == [
        *values(7),
        None,
        None,
    ]
