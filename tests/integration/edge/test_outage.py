"""Kafka goes away: everything answered 202 is in the topic in the end, also when the edge is killed meanwhile."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from local.kafka.local_kafka import LocalKafka
from schemas.projects import Project
from tests.edge_events import event
from tests.eventually import eventually
from tests.integration.edge.conftest import Deployment
from tests.integration.edge.edge_process import EdgeProcess, headers, running, stored, write_project
from tests.servers import CACHE
from tests.topics import EDGE_TOPICS, create_topics

PREFIX = "outage."
OUTAGE_SECONDS = int(os.environ.get("OUTAGE_SECONDS", "10"))
SHORT = {"edge_send_deadline_seconds": "2"}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalKafka]:
    """A broker of the test's own, to be stopped and killed."""
    kafka = LocalKafka(tmp_path / "kafka", CACHE)
    await asyncio.to_thread(kafka.start, 120)
    yield kafka
    await asyncio.to_thread(kafka.stop)


@pytest.fixture
async def outage(broker: LocalKafka) -> Deployment:
    await create_topics(broker.bootstrap, PREFIX, 4, EDGE_TOPICS)
    project = await write_project(broker.bootstrap, PREFIX, rate_limit_per_minute=1_000_000)
    return Deployment(broker.bootstrap, PREFIX, project)


class Load:
    """Clients that send single events and batches, and remember the accepted ones."""

    def __init__(self, edge: EdgeProcess, project: Project) -> None:
        self.edge = edge
        self.project = project
        self.accepted: set[str] = set()
        self.statuses: dict[int, int] = {}
        self.longest_seconds = 0.0
        self._running = True

    async def run(self, session: aiohttp.ClientSession, batch: int) -> None:
        loop = asyncio.get_running_loop()
        path = "/v1/events" if batch == 1 else "/v1/events:batch"
        while self._running:
            given = [event() for _ in range(batch)]
            body = json.dumps(given[0] if batch == 1 else {"events": given}).encode()
            started = loop.time()
            try:
                async with session.post(
                    self.edge.url + path, data=body, headers=headers(self.project)
                ) as response:
                    await response.read()
                    self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
                    if response.status == 202:
                        self.accepted |= {each["id"].replace("-", "") for each in given}
                        self.longest_seconds = max(self.longest_seconds, loop.time() - started)
            except aiohttp.ClientError:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.005)

    def end(self) -> None:
        self._running = False


async def leave(broker: LocalKafka, how: str) -> None:
    if how == "freeze":
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGSTOP)
    else:
        await asyncio.to_thread(getattr(broker, how))


async def come_back(broker: LocalKafka, how: str) -> None:
    if how == "freeze":
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGCONT)
    else:
        await asyncio.to_thread(broker.start)


async def missing(deployment: Deployment, load: Load) -> set[str]:
    """Ids that were accepted and are not in the topic."""
    return load.accepted - {
        each.id.hex() for _, each in await stored(deployment.bootstrap, deployment.prefix)
    }


@pytest.mark.parametrize(
    "how",
    [pytest.param("stop", marks=pytest.mark.slow), "kill", pytest.param("freeze", marks=pytest.mark.slow)],
)
@pytest.mark.holds("contract 2.9")
async def test_no_accepted_event_is_lost_when_kafka_goes_away_under_load(
    outage: Deployment, broker: LocalKafka, tmp_path: Path, how: str
) -> None:
    edge = EdgeProcess(outage.bootstrap, outage.prefix, tmp_path / "edge", 1, **SHORT)
    load = Load(edge, outage.project)
    async with running(edge), aiohttp.ClientSession() as session:
        clients = [asyncio.create_task(load.run(session, batch)) for batch in (1, 1, 20)]
        await eventually(lambda: len(load.accepted) > 300)
        await leave(broker, how)
        before = len(load.accepted)
        await asyncio.sleep(OUTAGE_SECONDS)
        # Events are accepted while Kafka is away.
        await eventually(lambda: len(load.accepted) > before + 100)
        await come_back(broker, how)
        during = len(load.accepted)
        await eventually(lambda: len(load.accepted) > during + 300, 60)
        load.end()
        await asyncio.gather(*clients)

        async def drained() -> bool:
            return not await missing(outage, load)

        await eventually(drained, 60)
    assert set(load.statuses) == {202}


@pytest.mark.slow
@pytest.mark.holds("contract 2.9")
async def test_no_accepted_event_is_lost_when_the_edge_is_killed_during_the_outage(
    outage: Deployment, broker: LocalKafka, tmp_path: Path
) -> None:
    edge = EdgeProcess(outage.bootstrap, outage.prefix, tmp_path / "edge", 1, **SHORT)
    load = Load(edge, outage.project)
    async with running(edge), aiohttp.ClientSession() as session:
        clients = [asyncio.create_task(load.run(session, batch)) for batch in (1, 20)]
        await eventually(lambda: len(load.accepted) > 200)
        await asyncio.to_thread(broker.kill)
        before = len(load.accepted)
        await eventually(lambda: len(load.accepted) > before + 300, 60)
        edge.kill()
        edge.start()
        # Started while Kafka is away: the snapshot of the projects is all that it knows.
        await edge.ready(connected=False)
        killed = len(load.accepted)
        await eventually(lambda: len(load.accepted) > killed + 300, 60)
        await asyncio.to_thread(broker.start)
        load.end()
        await asyncio.gather(*clients)

        async def drained() -> bool:
            return not await missing(outage, load)

        await eventually(drained, 60)
    assert set(load.statuses) <= {202, 503}
