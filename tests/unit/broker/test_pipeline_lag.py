"""The time until which all records are stored, from the progress of the two groups."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker import pipeline_lag
from broker.pipeline_lag import Grouped, Lag, PipelineLag, stored_until
from schemas.settings import KafkaSettings
from tests.eventually import eventually

LOOKS = [Grouped(at_ms=1_000, until_ms=400), Grouped(2_000, 500), Grouped(3_000, 2_900)]


def test_records_grouped_before_a_moment_had_arrived_long_before_if_the_processors_were_behind() -> None:
    assert stored_until(LOOKS, 2_999) == 500
    assert stored_until(LOOKS, 3_000) == 2_900
    assert stored_until(LOOKS, 9_000) == 2_900


def test_before_the_first_look_no_later_time_is_known_than_the_first_one_found() -> None:
    assert stored_until(LOOKS, 999) == 400
    assert stored_until(LOOKS, 100) == 100
    assert stored_until([], 100) == 100


async def test_a_broker_that_takes_its_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def no_clients(_: KafkaSettings) -> AsyncIterator[tuple[None, None]]:
        yield None, None

    async def slow_look(*_: object) -> Lag:
        await asyncio.sleep(0.05)
        return Lag(is_known=True)

    monkeypatch.setattr(pipeline_lag, "_ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(pipeline_lag, "clients", no_clients)
    lag = PipelineLag(KafkaSettings(kafka_bootstrap="x:1"), "processors", "writer", look_seconds=0.0)
    monkeypatch.setattr(lag, "_look", slow_look)
    looking = asyncio.create_task(lag.run())
    await eventually(lambda: lag.lag.is_known)
    looking.cancel()
