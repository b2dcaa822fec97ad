"""Clients of Kafka that are interrupted, or whose broker has gone, leave no connection and no task behind."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from broker.client import new_consumer, open_admin, open_consumer, open_producer
from broker.closing import stop_consumer
from broker.commit import leave
from control.project_store import ProjectStore
from schemas.settings import KafkaSettings
from tests.eventually import eventually
from tests.unit.broker.answering_broker import API_VERSIONS, METADATA, Broker

TOPIC = "svc.events"
LONG_SECONDS = 600.0


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    broker = Broker(topic=TOPIC)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture
def settings(broker: Broker) -> KafkaSettings:
    return KafkaSettings(kafka_bootstrap=broker.address)


def _left(broker: Broker) -> list[Any]:
    """The tasks of clients, and their open connections."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return [task for task in tasks if "Broker._serve" not in repr(task)] + broker.connections


async def _nothing_left(broker: Broker) -> None:
    await eventually(lambda: not _left(broker))


async def _administer(settings: KafkaSettings) -> None:
    async with open_admin(settings):
        pass


async def _read(settings: KafkaSettings) -> None:
    async with open_consumer(settings):
        pass


async def _write(settings: KafkaSettings) -> None:
    async with open_producer(settings, enable_idempotence=False):
        pass


async def _know_projects(settings: KafkaSettings) -> None:
    async with ProjectStore(settings):
        pass


@pytest.mark.parametrize("use", [_administer, _read, _write, _know_projects])
async def test_a_start_that_is_cancelled_leaves_nothing_open(
    use: Callable[[KafkaSettings], Awaitable[None]],
    broker: Broker,
    settings: KafkaSettings,
) -> None:
    broker.unanswered.add(METADATA)
    using = asyncio.ensure_future(use(settings))
    await broker.requested.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await using
    assert caught.traceback
    # A connection that is left open is closed with a warning when it is collected. The error that is held
    # here holds it.
    await _nothing_left(broker)


async def test_bug_of_a_cancelled_start_is_still_there(broker: Broker) -> None:
    broker.unanswered.add(METADATA)
    client = AIOKafkaClient(bootstrap_servers=broker.address)
    starting = asyncio.create_task(client.bootstrap())
    await broker.requested.wait()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await starting
    await client.close()
    frames = [entry.frame for entry in caught.traceback]
    [connection] = [
        frame.f_locals["bootstrap_conn"] for frame in frames if "bootstrap_conn" in frame.f_locals
    ]
    assert connection.connected(), "aiokafka has changed: close_interrupted_start can go"
    await connection.close()


@pytest.fixture
async def pausing(settings: KafkaSettings, caplog: pytest.LogCaptureFixture) -> AIOKafkaConsumer:
    """A consumer whose fetch has failed and pauses."""
    consumer = new_consumer(settings)
    await consumer.start()
    consumer._fetcher._retry_backoff = LONG_SECONDS
    consumer.assign([TopicPartition(TOPIC, 0)])
    consumer.seek(TopicPartition(TOPIC, 0), 0)
    with caplog.at_level(logging.ERROR, "aiokafka"):
        await eventually(lambda: "Failed fetch messages" in caplog.text)
    return consumer


@pytest.mark.parametrize("stop", [stop_consumer, leave])
async def test_a_consumer_whose_fetch_pauses_after_an_error_stops(
    stop: Callable[[Any], Awaitable[None]],
    pausing: AIOKafkaConsumer,
    broker: Broker,
) -> None:
    await stop(pausing)
    await _nothing_left(broker)


async def test_bug_of_a_pausing_fetch_is_still_there(pausing: AIOKafkaConsumer) -> None:
    with pytest.raises(asyncio.CancelledError):
        await pausing.stop()
    assert pausing._client._sync_task is not None, "aiokafka has changed: stop_consumer can go"
    await stop_consumer(pausing)


async def test_a_stop_that_is_cancelled_closes_all(settings: KafkaSettings, broker: Broker) -> None:
    consumer = new_consumer(settings)
    await consumer.start()
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    consumer._coordinator.close = hang
    stopping = asyncio.create_task(stop_consumer(consumer))
    await begun.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await _nothing_left(broker)


async def test_a_client_that_is_closed_does_not_connect_again(
    settings: KafkaSettings, broker: Broker
) -> None:
    async with open_admin(settings) as admin:
        assert (await admin._client.send(0, MetadataRequest([]))).brokers
    with pytest.raises(KafkaError):
        await admin._client.send(0, MetadataRequest([]))
    await _nothing_left(broker)


async def test_a_connection_on_its_way_is_closed_with_its_client(
    settings: KafkaSettings, broker: Broker
) -> None:
    async with open_admin(settings) as admin:
        broker.unanswered.add(API_VERSIONS)
        sending = asyncio.create_task(admin._client.send(0, MetadataRequest([])))
        await broker.requested.wait()
    broker.answer()
    with pytest.raises(KafkaError):
        await sending
    await _nothing_left(broker)
