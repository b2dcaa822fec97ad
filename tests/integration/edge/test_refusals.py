"""Kafka answers, but not with an acknowledgement: a record that its topic doesn't take."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from edge.delivery.quarantine import quarantined_under
from tests.edge_events import event
from tests.eventually import eventually
from tests.integration.edge.conftest import Deployment
from tests.integration.edge.edge_process import EdgeProcess, headers, running, stored


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
        # A record sent while the producer was replaced may be there twice.
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
    """The output of `svc spool NAME --json` while the edge runs."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-P", "-m", "cli", "spool", name, "--json", "--data-dir", str(edge.data_dir)],
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
