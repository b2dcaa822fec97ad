"""A Kafka client that can't be created: temporary errors are retried, permanent ones are reported."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker import client
from broker.client import follow_projects
from edge.delivery.kafka_sink import KafkaSink
from edge.project_snapshot import ProjectSnapshot
from local.ports import free_port
from schemas.projects import ProjectRegistry
from schemas.settings import KafkaSettings
from tests.eventually import eventually


@pytest.fixture
def without_ca(tmp_path: Path) -> KafkaSettings:
    """Settings whose CA file went away after they were loaded."""
    return KafkaSettings(
        kafka_bootstrap=f"127.0.0.1:{free_port()}",
        kafka_security_protocol="SSL",
        kafka_ca_file=str(tmp_path / "gone.pem"),
    )


BROKEN = KafkaSettings(kafka_bootstrap="localhost:abc")


async def test_sink_without_its_ca_file_is_tried_again(
    without_ca: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[BaseException] = []
    sink = KafkaSink(without_ca, 2.0, faults.append)
    tries = counted(monkeypatch, sink, "_new_producer")
    await sink.start()
    await eventually(lambda: len(tries) >= 3, 60)
    assert sink.attempted
    assert not sink.up
    await sink.stop()
    assert not faults


async def test_follower_without_its_ca_file_is_tried_again(
    without_ca: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = follow_projects(without_ca, ProjectRegistry())
    tries = counted(monkeypatch, client, "new_consumer")
    running = asyncio.create_task(follower.run())
    await eventually(lambda: len(tries) >= 3 or running.done(), 60)
    assert not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_error_that_ends_the_probe_is_reported_and_not_raised_again_at_the_stop() -> None:
    heard: list[BaseException] = []
    sink = KafkaSink(BROKEN, 2.0, heard.append)
    await sink.start()
    await eventually(lambda: heard, 60)
    assert isinstance(heard[0], ValueError)
    await sink.stop()


async def test_unobserved_error_of_the_probe_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    sink = KafkaSink(BROKEN, 2.0)
    await sink.start()
    await eventually(lambda: any(record.levelno == logging.CRITICAL for record in caplog.records), 60)
    await sink.stop()


@pytest.mark.parametrize("read", [False, True])
async def test_error_of_the_follower_ends_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    """Before the topic has been read, and after: the registry must not grow old unnoticed."""

    async def run(follower: Any) -> None:
        if read:
            follower.loaded.set()
            await eventually(lambda: directory.known)
        raise ValueError("a bad address")

    monkeypatch.setattr("broker.client.TopicFollower.run", run)
    directory = ProjectSnapshot(tmp_path / "projects.json")
    async with asyncio.timeout(60):
        with pytest.raises(ExceptionGroup) as caught:
            await directory.run(BROKEN)
    assert caught.group_contains(ValueError, match="a bad address")


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[None]:
    """A list that grows with each call of a method."""
    calls: list[None] = []
    method: Callable[..., Coroutine[Any, Any, None]] = getattr(owner, name)

    def call(*given: object, **more: object) -> object:
        calls.append(None)
        return method(*given, **more)

    monkeypatch.setattr(owner, name, call)
    return calls
