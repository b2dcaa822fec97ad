"""Kafka or spool, and the way back out of the spool."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.errors import SinkUnavailable
from edge.delivery.chunk_delivery import ChunkDelivery
from edge.delivery.chunker import EventTuple
from edge.delivery.drain import batches, drain_forever
from edge.delivery.spool import Spool
from schemas.chunks import decode_chunk
from schemas.ids import event_partition, uuid7
from schemas.topics import Topic
from tests.eventually import eventually
from tests.unit.edge.delivery.memory_sink import MemorySink


def events(count: int) -> list[EventTuple]:
    return [(7, uuid7().bytes, 5, "a/1", b"payload") for _ in range(count)]


def ids(sink: MemorySink) -> list[bytes]:
    return [event.id for record in sink.records for event in decode_chunk(record.value)]


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[Spool]:
    made = Spool(tmp_path, 1 << 20, 3600)
    yield made
    await made.stop()


async def test_events_gathered_before_the_partitions_were_known_go_each_to_its_own(spool: Spool) -> None:
    sink = MemorySink(4)
    given = events(50)
    await ChunkDelivery(sink, spool).deliver(0, 1, given)
    assert sorted(ids(sink)) == sorted(event[1] for event in given)
    for record in sink.records:
        assert {event_partition(7, event.id, 4) for event in decode_chunk(record.value)} == {record.partition}


async def test_spool_drains_in_order_when_kafka_is_back(spool: Spool) -> None:
    sink = MemorySink(1)
    sink.up = False
    delivery = ChunkDelivery(sink, spool)
    given = events(30)
    for event in given:
        await delivery.deliver(0, 1, [event])
    draining = asyncio.create_task(drain_forever(spool, sink))
    await asyncio.sleep(0)
    assert sink.records == []
    sink.up = True
    await eventually(lambda: spool.size == 0)
    assert ids(sink) == [event[1] for event in given]
    draining.cancel()


async def test_segment_interrupted_by_another_outage_is_sent_again_whole(spool: Spool) -> None:
    class Flaky(MemorySink):
        left = 2

        async def send(
            self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
        ) -> None:
            self.left -= 1
            if self.left == 0:
                raise SinkUnavailable("again")
            await super().send(topic, value, partition, key)

    sink = Flaky(1)
    sink.up = False
    delivery = ChunkDelivery(sink, spool)
    given = events(1000)
    for offset in range(0, 1000, 100):
        await delivery.deliver(0, 1, given[offset : offset + 100])
    sink.up = True
    draining = asyncio.create_task(drain_forever(spool, sink))
    await eventually(lambda: spool.size == 0)
    assert ids(sink) == [event[1] for event in given[:400] + given]
    draining.cancel()


def test_spooled_records_are_packed_in_order_up_to_a_bound() -> None:
    given = events(1050)
    spooled = [given[offset : offset + 7] for offset in range(0, 1050, 7)]
    packed = list(batches(spooled))
    assert [event for pack in packed for event in pack] == given
    assert [len(batch) for batch in packed] == [406, 406, 238]
    large: list[list[EventTuple]] = [[(1, b"0" * 16, 0, "a/1", bytes(3_000_000))] for _ in range(5)]
    assert [len(batch) for batch in batches(large)] == [2, 2, 1]
