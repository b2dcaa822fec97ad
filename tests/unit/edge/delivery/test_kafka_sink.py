"""The sink with a producer that fails in every way that aiokafka knows.

No such failure reaches a client, and each ends.
"""

import asyncio
import inspect
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import errors

from broker.errors import SinkUnavailable
from broker.kafka_diagnosis import Unreachable
from broker.producer import RecordProducer
from broker.send_errors import SendErrorKind, kind_of
from edge.delivery.chunk_delivery import ChunkDelivery, send_partitioned
from edge.delivery.chunker import EventTuple
from edge.delivery.drain import drain_forever
from edge.delivery.kafka_sink import Failure, KafkaSink, backoff_seconds
from edge.delivery.quarantine import quarantined_in
from edge.delivery.spool import Spool
from edge.delivery.status import delivery_part, outcomes_part
from schemas.chunks import decode_chunk
from schemas.health import Part
from schemas.ids import uuid7
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from tests.eventually import eventually

EVENTS = "svc.events"
ERRORS = sorted(
    {each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, Exception)}
    - {errors.BrokerResponseError}
    | {AssertionError, ConnectionResetError, TimeoutError, ValueError},
    key=lambda each: each.__name__,
)


class Broker:
    """The log of the fake producers, and their failures: `errors` by topic, before or after the record is stored."""

    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}
        self.start_error: Exception | None = None
        self.immediate = False
        self.silent = False
        self.largest: int | None = None
        self.made = 0
        self.refusals = 0
        self.records: list[tuple[str, int | None, bytes]] = []

    def ids(self) -> list[bytes]:
        return [
            event.id for name, _, value in self.records if name == EVENTS for event in decode_chunk(value)
        ]


class FakeProducer(RecordProducer):
    """One producer on the broker; abandoned, it may not be used any more."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.abandoned = False
        broker.made += 1

    async def start(self) -> None:
        if self.broker.start_error:
            raise self.broker.start_error

    async def enqueue(
        self,
        topic: str,
        value: bytes,
        key: bytes | None,  # noqa: ARG002
        partition: int | None,
        headers: Any,  # noqa: ARG002
    ) -> "asyncio.Future[Any]":
        assert not self.abandoned
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        error = self.broker.errors.get(topic)
        if self.broker.largest is not None and len(value) > self.broker.largest:
            self.broker.refusals += 1
            error = errors.MessageSizeTooLargeError()
        if error and self.broker.immediate:
            raise error
        if error:
            future.set_exception(error)
        elif not self.broker.silent:
            self.broker.records.append((topic, partition, value))
            future.set_result(None)
        return future

    async def led_partitions(self, names: Any) -> int:  # noqa: ARG002
        return 4

    async def flush(self, seconds: float) -> None:
        pass

    async def abandon(self) -> None:
        self.abandoned = True


@asynccontextmanager
async def sink_on(broker: Broker, **options: Any) -> AsyncIterator[KafkaSink]:
    given = {"new_producer": lambda _: FakeProducer(broker), "explain": lambda _: None} | options
    sink = KafkaSink(KafkaSettings(), 60.0, **given)
    await sink.start()
    await eventually(lambda: sink.attempted)
    yield sink
    await sink.stop()


def event(size: int = 10) -> EventTuple:
    return 7, uuid7().bytes, 5, "a/1", random.randbytes(size)


@pytest.mark.parametrize(
    ("error", "immediate"),
    [
        *((each, False) for each in ERRORS),
        *((each, True) for each in (AssertionError, errors.KafkaTimeoutError, errors.ProducerClosed)),
    ],
)
async def test_event_is_safe_whatever_a_send_raises_and_delivery_goes_on_when_that_ends(
    tmp_path: Path, error: type[Exception], immediate: bool
) -> None:
    broker = Broker()
    broker.errors[EVENTS], broker.immediate = error(), immediate
    spool = Spool(tmp_path, 1 << 20, 3600)
    given = event()
    async with sink_on(broker) as sink:
        await ChunkDelivery(sink, spool).deliver(0, 4, [given])
        assert spool.size > 0
        assert broker.records == []
        if kind_of(error()) is not SendErrorKind.TOO_LARGE:
            assert sink.failures[Topic.EVENTS].error == error.__name__
            assert sink.errors == {error.__name__: 1}
        del broker.errors[EVENTS]
        draining = asyncio.create_task(drain_forever(spool, sink))
        await eventually(lambda: spool.size == 0)
        draining.cancel()
        if kind_of(error()) is not SendErrorKind.TOO_LARGE:
            assert broker.ids() == [given[1]]
        assert sink.failures == {}
        await sink.send(Topic.EVENTS, b"x", 0)
    await spool.stop()


async def test_sends_in_flight_end_with_the_producer_and_the_first_error_is_reported() -> None:
    broker = Broker()
    async with sink_on(broker) as sink:
        broker.silent = True
        waiting = [asyncio.create_task(sink.send(Topic.EVENTS, b"x", 0)) for _ in range(3)]
        await asyncio.sleep(0)
        broker.errors[EVENTS] = errors.TopicAuthorizationFailedError(EVENTS)
        with pytest.raises(SinkUnavailable):
            await sink.send(Topic.EVENTS, b"x", 0)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in ended] == [SinkUnavailable] * 3
        assert sink.failures[Topic.EVENTS].error == "TopicAuthorizationFailedError"
        assert sink.errors == {"TopicAuthorizationFailedError": 1}


async def test_topic_of_outcomes_without_the_right_to_write_holds_up_no_event() -> None:
    broker = Broker()
    async with sink_on(broker) as sink:
        broker.errors["svc.outcomes"] = errors.TopicAuthorizationFailedError("svc.outcomes")
        with pytest.raises(SinkUnavailable):
            await sink.send(Topic.OUTCOMES, b"x")
        assert sink.up
        await sink.send(Topic.EVENTS, b"x", 0)
        assert set(sink.failures) == {Topic.OUTCOMES}
        part = outcomes_part(sink.failures[Topic.OUTCOMES])
        assert part.ok
        assert "TopicAuthorizationFailedError: svc.outcomes" in part.detail
    assert outcomes_part(None) == Part(True)


async def test_failure_to_connect_is_reported_until_a_producer_has_started() -> None:
    broker = Broker()
    broker.start_error = errors.KafkaConnectionError("no broker")
    async with sink_on(broker) as sink:
        failure = sink.failures[Topic.EVENTS]
        assert (failure.error, failure.kind) == ("KafkaConnectionError", SendErrorKind.UNAVAILABLE)
        broker.start_error = None
        await eventually(lambda: sink.up)
        assert sink.failures == {}


async def test_wrong_password_is_distinguished_from_a_broker_that_is_unreachable() -> None:
    """aiokafka raises the same for both."""
    broker = Broker()
    broker.start_error = errors.KafkaConnectionError("Unable to bootstrap")
    refused = Unreachable("k:9092 refuses user 'edge'", "check the password", denied=True)
    async with sink_on(broker, explain=lambda _: refused) as sink:
        await eventually(lambda: sink.failures[Topic.EVENTS].kind is SendErrorKind.DENIED)
        assert "refuses user 'edge'" in sink.failures[Topic.EVENTS].detail
        made = broker.made
        await eventually(lambda: broker.made > made)
        assert sink.failures[Topic.EVENTS].kind is SendErrorKind.DENIED


def test_producers_that_are_denied_everything_follow_each_other_ever_more_slowly() -> None:
    pauses = [backoff_seconds(fruitless) for fruitless in range(100)]
    assert pauses[:2] == [0.0, 0.0]
    assert pauses == sorted(pauses)
    assert max(pauses) == 5.0


async def test_chunk_too_large_for_the_topic_is_sent_in_pieces_and_its_size_is_not_tried_again() -> None:
    broker, now = Broker(), 1000.0
    broker.largest = 1000
    given = [event(200) for _ in range(60)]
    async with sink_on(broker, now=lambda: now) as sink:

        async def sent() -> bool:
            try:
                return await send_partitioned(sink, given) == []
            except SinkUnavailable:
                # A refused record costs the producer.
                await eventually(lambda: sink.up)
                return False

        await eventually(sent)
        assert set(broker.ids()) == {each[1] for each in given}
        refusals, made = broker.refusals, broker.made
        assert refusals > 0
        assert await send_partitioned(sink, given) == []
        assert (broker.refusals, broker.made) == (refusals, made)
        now += 301
        broker.largest = None
        await sink.send(Topic.EVENTS, bytes(5000), 0)


async def test_event_too_large_for_the_topic_is_quarantined_and_those_around_it_flow_on(
    tmp_path: Path,
) -> None:
    broker = Broker()
    broker.largest = 1000
    spool = Spool(tmp_path, 1 << 20, 3600)
    given = [event(), event(2000), event()]
    async with sink_on(broker) as sink:
        delivery = ChunkDelivery(sink, spool)
        await delivery.deliver(0, 4, given)
        draining = asyncio.create_task(drain_forever(spool, sink))
        await eventually(lambda: not spool.has_segments.is_set())
        draining.cancel()
        assert set(broker.ids()) == {given[0][1], given[2][1]}
        assert spool.too_large_events == 1
        assert spool.quarantined_bytes > 2000
        (kept,) = quarantined_in(tmp_path)
        assert kept.name.endswith(".spool.too-large")
    await spool.stop()


def part(
    failure: str | None = None, kind: SendErrorKind = SendErrorKind.UNAVAILABLE, **state: Any
) -> tuple[bool, str]:
    given = {"attempted": True, "has_delivered": True, "spool_full": False, "spool_bytes": 77} | state
    found = delivery_part(Failure(failure, failure, kind, 0.0) if failure else None, **given)
    return found.ok, found.detail


def test_readiness_says_why_nothing_is_delivered_and_since_when() -> None:
    assert part() == (True, "")
    ok, detail = part("RequestTimedOutError")
    assert ok
    assert all(word in detail for word in ("RequestTimedOutError", "1970-01-01T00:00:00Z", "77 bytes"))


def test_edge_is_ready_while_it_spools_unless_it_was_denied_access_from_the_beginning() -> None:
    assert part(attempted=False)[0] is False
    assert part("x", has_delivered=False)[0] is True
    assert part("x", SendErrorKind.DENIED)[0] is True
    assert part("x", SendErrorKind.DENIED, has_delivered=False)[0] is False
    assert part("x", spool_full=True)[0] is False
