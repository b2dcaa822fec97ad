"""Kafka answers, but not with an acknowledgement: rights that are missing, and records that a topic doesn't take."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.protocol.admin import CreateAclsRequest

from edge.delivery.quarantine import quarantined_under
from local.kafka.server import LocalKafka
from tests.edge_events import event
from tests.eventually import eventually
from tests.integration.edge.conftest import Deployment
from tests.integration.edge.edge_process import EdgeProcess, headers, running, stored, write_project
from tests.servers import CACHE
from tests.topics import create_topics

PREFIX = "denied."
READ, WRITE, DESCRIBE = 3, 4, 8
_TOPIC, _LITERAL, _ALLOW = 2, 3, 3
WITH_RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Deployment]:
    """A broker that asks for rights on every topic for which some were given."""
    kafka = LocalKafka(tmp_path / "kafka", CACHE, overrides=WITH_RIGHTS)
    await asyncio.to_thread(kafka.start, 120)
    await create_topics(kafka.bootstrap, PREFIX, 4)
    yield Deployment(kafka.bootstrap, PREFIX, await write_project(kafka.bootstrap, PREFIX))
    await asyncio.to_thread(kafka.stop)


async def grant(deployment: Deployment, *operations: int) -> None:
    """Give everybody these rights on `events`; the first gift takes all others away."""
    admin = AIOKafkaAdminClient(bootstrap_servers=deployment.bootstrap)
    await admin.start()
    try:
        for operation in operations:
            answer = await admin._send_request(
                CreateAclsRequest(
                    _TOPIC, deployment.prefix + "events", _LITERAL, "User:*", "*", operation, _ALLOW
                )
            )
            assert [error for error, _ in answer.creation_responses] == [0]
    finally:
        await admin.close()


class Client:
    """Posts events to an edge, one at a time, and looks at its readiness."""

    def __init__(self, edge: EdgeProcess, deployment: Deployment, session: aiohttp.ClientSession) -> None:
        self._edge, self._deployment, self._session = edge, deployment, session
        self.accepted: set[str] = set()

    async def post(self, **fields: Any) -> int:
        given = event(**fields)
        async with self._session.post(
            self._edge.url + "/v1/events", json=given, headers=headers(self._deployment.project)
        ) as response:
            if response.status == 202:
                self.accepted.add(given["id"].replace("-", ""))
            return response.status

    async def readiness(self) -> tuple[int, dict[str, Any]]:
        async with self._session.get(self._edge.url + "/readyz") as response:
            return response.status, (await response.json())["parts"]

    async def metrics(self) -> str:
        async with self._session.get(self._edge.url + "/metrics") as response:
            return await response.text()

    async def all_stored(self) -> bool:
        found = await stored(self._deployment.bootstrap, self._deployment.prefix)
        return bool(self.accepted <= {each.id.hex() for _, each in found})


async def test_right_that_is_taken_away_costs_no_event_is_reported_and_ends_when_it_is_given_back(
    guarded: Deployment, tmp_path: Path
) -> None:
    edge = EdgeProcess(guarded.bootstrap, guarded.prefix, tmp_path / "edge")
    async with running(edge), aiohttp.ClientSession() as session:
        client = Client(edge, guarded, session)
        assert await client.post() == 202
        await eventually(client.all_stored)
        await grant(guarded, READ, DESCRIBE)
        assert [await client.post() for _ in range(5)] == [202] * 5

        status, parts = await client.readiness()
        # It has delivered before, and the spool takes what comes.
        assert status == 200
        assert "TopicAuthorizationFailedError" in parts["delivery"]["detail"]
        assert "since 20" in parts["delivery"]["detail"]

        async def counted() -> bool:
            page = await client.metrics()
            return (
                'svc_edge_kafka_errors_total{error="TopicAuthorizationFailedError"}' in page
                and "svc_edge_undelivered_seconds 0.0" not in page
            )

        await eventually(counted)
        await grant(guarded, WRITE)
        await eventually(client.all_stored, 60)
        await eventually(lambda: not list(edge.data_dir.glob("edge/spool/*/*.spool")))
        assert (await client.readiness())[1]["delivery"] == {"ok": True, "detail": ""}


async def test_edge_that_was_never_allowed_to_write_is_not_ready_so_that_a_rollout_stops(
    guarded: Deployment, tmp_path: Path
) -> None:
    await grant(guarded, READ, DESCRIBE)
    edge = EdgeProcess(guarded.bootstrap, guarded.prefix, tmp_path / "edge")
    async with running(edge), aiohttp.ClientSession() as session:
        client = Client(edge, guarded, session)
        assert await client.post() == 202
        assert (await client.readiness())[0] == 503
        await grant(guarded, WRITE)
        await eventually(client.all_stored, 60)


async def limit(deployment: Deployment, max_message_bytes: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=deployment.bootstrap)
    await admin.start()
    try:
        configs = {"max.message.bytes": str(max_message_bytes)}
        await admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, deployment.prefix + "events", configs)]
        )
    finally:
        await admin.close()


async def test_event_larger_than_the_topic_takes_is_quarantined_and_the_others_arrive(
    deployment: Deployment, tmp_path: Path
) -> None:
    await limit(deployment, 20_000)
    edge = EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path / "edge")
    async with running(edge), aiohttp.ClientSession() as session:
        client = Client(edge, deployment, session)
        for _ in range(3):
            assert await client.post() == 202
        expected = set(client.accepted)
        # Compressed it is still larger than the topic's limit.
        large = {"type": "E", "message": os.urandom(40_000).hex(), "stack": []}
        assert await client.post(error=large) == 202
        (kept_id,) = client.accepted - expected
        client.accepted = expected
        for _ in range(3):
            assert await client.post() == 202
        await eventually(client.all_stored, 60)
        await eventually(lambda: list(quarantined_under(edge.data_dir / "edge" / "spool")), 60)
        (kept,) = quarantined_under(edge.data_dir / "edge" / "spool")
        assert kept.name.endswith(".spool.too-large")

        async def counted() -> bool:
            return "svc_edge_too_large_events_total 1.0" in await client.metrics()

        await eventually(counted)
        assert "svc spool list" in (await client.readiness())[1]["spool"]["detail"]

        (row,) = (await spool_command(deployment, edge, "list"))["segments"]
        # One that came while the producer was replaced may stand beside it.
        assert (row["reason"], row["unreadable"]) == ("too-large", 0)
        await limit(deployment, 1_000_000)
        (row,) = (await spool_command(deployment, edge, "replay"))["segments"]
        assert (row["sent"], row["tooLarge"]) == (row["events"], 0)
        client.accepted.add(kept_id)
        assert await client.all_stored()
        assert (await spool_command(deployment, edge, "list"))["segments"] == []

        async def forgotten() -> bool:
            _, parts = await client.readiness()
            return bool(parts["spool"] == {"ok": True, "detail": ""})

        await eventually(forgotten)


async def spool_command(deployment: Deployment, edge: EdgeProcess, name: str) -> dict[str, Any]:
    """What `svc spool NAME --json` prints, beside the running edge."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "cli", "spool", name, "--json", "--data-dir", str(edge.data_dir)],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SVC_")},
            "SVC_KAFKA_BOOTSTRAP": deployment.bootstrap,
            "SVC_TOPIC_PREFIX": deployment.prefix,
            "SVC_EDGE_SEND_DEADLINE_SECONDS": "30",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
