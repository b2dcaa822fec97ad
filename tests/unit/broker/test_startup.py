"""A process waits for the rights that it begins with, and names those that it lacks."""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from broker import startup
from broker.rights import RequiredRights, needs
from broker.startup import wait_for_rights
from schemas.health import Health
from schemas.settings import KafkaSettings, PipelineSettings
from tests.eventually import eventually

WRITER, DASHBOARD = (needs(PipelineSettings())[process] for process in ("writer", "dashboard"))
READ, DESCRIBE, INSERT = "Read on topic svc.grouped", "Describe on topic svc.events", "INSERT ON svc.*"


class Servers:
    """Rights that Kafka and ClickHouse refuse; None if the server doesn't tell."""

    def __init__(self) -> None:
        self.kafka: Sequence[str] = [READ, DESCRIBE]
        self.clickhouse: Sequence[str] | None = [INSERT]

    async def on_kafka(self, _settings: KafkaSettings, _need: RequiredRights) -> list[str]:
        return [*self.kafka]

    async def on_clickhouse(self) -> Sequence[str]:
        if self.clickhouse is None:
            raise OSError("connection refused")
        return self.clickhouse


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    servers = Servers()
    monkeypatch.setattr(startup, "missing_rights", servers.on_kafka)
    monkeypatch.setattr(startup, "_RETRY_SECONDS", 0.001)
    return servers


async def test_process_waits_for_its_rights_on_both_servers_and_names_them(servers: Servers) -> None:
    health = Health()
    starting = asyncio.create_task(
        wait_for_rights(KafkaSettings(), WRITER, servers.on_clickhouse, health=health)
    )

    def named(*missing: str) -> bool:
        part = health.parts().get("rights")
        return part is not None and not part.ok and f"missing: {', '.join(missing)};" in part.detail

    await eventually(lambda: named(READ, DESCRIBE, INSERT))
    servers.kafka = []
    await eventually(lambda: named(INSERT))
    servers.clickhouse = []
    await starting
    assert health.ready


async def test_process_names_a_right_that_it_can_do_without_and_begins(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    servers.kafka = [DESCRIBE]
    with caplog.at_level(logging.ERROR, "broker.startup"):
        await wait_for_rights(KafkaSettings(), DASHBOARD)
    (message,) = caplog.messages
    assert DESCRIBE in message


async def test_server_that_does_not_tell_is_not_waited_for(servers: Servers) -> None:
    servers.kafka, servers.clickhouse = [], None
    await wait_for_rights(KafkaSettings(), WRITER, servers.on_clickhouse)
