"""Batches that were handed over: awaited, or left alone because another one failed."""

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from schemas.settings import KafkaSettings


class Producer:
    """Takes batches; the test decides their results."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[Any]] = []

    def create_batch(self) -> Any:
        return SimpleNamespace(append=lambda **_: True, close=lambda: None)

    async def send_batch(self, *_: Any, **__: Any) -> "asyncio.Future[Any]":
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


@pytest.fixture
def producer() -> Producer:
    return Producer()


@pytest.fixture
def forwarder(producer: Producer) -> BatchProducer:
    made = BatchProducer(KafkaSettings())
    made._producer = producer
    return made


async def test_a_batch_tells_its_first_and_last_offset(producer: Producer, forwarder: BatchProducer) -> None:
    [begun] = await forwarder.begin("t", 0, [Message(None, b"a"), Message(None, b"b")])
    producer.sent[0].set_result(SimpleNamespace(offset=7))
    assert await begun == WrittenBatch(7, 8)


@pytest.mark.filterwarnings("error")
async def test_unawaited_batches_after_a_failure_log_nothing(
    producer: Producer, forwarder: BatchProducer, caplog: pytest.LogCaptureFixture
) -> None:
    begun = [*await forwarder.begin("t", 0, [Message(None, b"a")])]
    begun += await forwarder.begin("t", 1, [Message(None, b"b")])
    for sent in producer.sent:
        sent.set_exception(KafkaError("away"))
    with pytest.raises(KafkaError):
        await begun[0]
    begun.clear()
    producer.sent.clear()
    gc.collect()
    await asyncio.sleep(0)
    assert caplog.records == []
