"""Commands without processors that confirm them."""

import time

import pytest

from control.issue_commands import Commands
from local.ports import free_port
from schemas.errors import ChangesUnavailable
from schemas.ids import hex64, uuid7
from schemas.issues import Command
from schemas.settings import KafkaSettings
from schemas.times import iso
from tests.integration.storage.grouped import Stage


def command() -> Command:
    return Command(str(uuid7()), hex64(1), "1", "comment", "ann", iso(0), {"text": "x"})


async def test_without_a_broker_a_change_is_not_confirmed() -> None:
    settings = KafkaSettings(kafka_bootstrap=f"127.0.0.1:{free_port()}")
    with pytest.raises(ChangesUnavailable):
        await Commands(settings, deadline_seconds=1).apply([command()])


async def test_without_topics_the_reason_is_named(kafka_bootstrap: str, topic_prefix: str) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    with pytest.raises(ChangesUnavailable, match="svc migrate"):
        await Commands(settings, deadline_seconds=60).apply([command()])


async def test_without_processors_the_wait_ends_at_the_deadline(stage: Stage) -> None:
    since = time.monotonic()
    with pytest.raises(ChangesUnavailable):
        await Commands(stage.settings, deadline_seconds=1).apply([command()])
    assert time.monotonic() - since >= 1
