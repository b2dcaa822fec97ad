"""With a tenth of its CPU the whole pipeline goes on at a tenth of its speed, and says that it is behind."""

import asyncio
import random
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from bench.servers import prepare, supervised
from cli.demo.sample_events import fresh, load_samples
from cli.send.batch_sender import Sender
from cli.send.send_batches import SendBatch, batches
from storage.client import Client, open_client, scalar
from tests.e2e.whole_stack import SDK, encoded, project_of, session_of
from tests.eventually import eventually
from tests.servers import CACHE
from tests.starved import starved

pytestmark = pytest.mark.slow

FIRST = 2_000
"""Before anything is measured: all processes have done everything once."""
FAST = 20_000
SLOW = 60_000
"""More than the seconds after which the pages say that the pipeline is behind."""
LEAST_SPEED = 0.07
PATIENCE_SECONDS = 500


def batches_of(count: int, seed: int) -> list[SendBatch]:
    """Compressed requests with so many new events."""
    chance, samples = random.Random(seed), load_samples()
    events = [
        event for _ in range(0, count, len(samples)) for event in fresh(samples, datetime.now(UTC), chance)
    ]
    return list(batches(encoded(events[:count])))


async def test_a_tenth_of_the_cpu_stores_at_a_tenth_of_the_speed_and_says_so(tmp_path: Path) -> None:
    stack = prepare(tmp_path, CACHE)
    async with supervised(stack.children()) as supervisor:
        project = await project_of(stack)
        client = open_client(stack.environ["SVC_CLICKHOUSE_URL"])
        sent = 0

        async def speed(count: int) -> float:
            """Events a second, from the first request until all are stored."""
            nonlocal sent
            requests = batches_of(count, seed=count)
            sent, began = sent + count, time.monotonic()
            report = await Sender(stack.ingest_url, project.token, SDK).send(requests)
            assert report.clean, report.problems
            await eventually(lambda: stored(client) >= sent, PATIENCE_SECONDS)
            return count / (time.monotonic() - began)

        await speed(FIRST)
        fast = await speed(FAST)
        pids = {name: status.pid for name, status in supervisor.statuses.items()}
        with starved([pid for pid in pids.values() if pid is not None]):
            async with session_of(stack) as session:

                async def is_behind() -> bool:
                    async with session.get("/api/v1/pipeline") as answer:
                        return answer.status == 200 and (await answer.json())["behind"] is not None

                slow, _ = await asyncio.gather(speed(SLOW), eventually(is_behind, PATIENCE_SECONDS))
        Console(soft_wrap=True).print(f"{fast:.0f} and {slow:.0f} events/s: {slow / fast:.3f}")
        assert stored(client) == sent
        assert {name: status.pid for name, status in supervisor.statuses.items()} == pids
        assert not any(status.restarts for status in supervisor.statuses.values())
        assert slow / fast >= LEAST_SPEED
        client.close()


def stored(client: Client) -> int:
    """The events in ClickHouse, each once."""
    found = "SELECT if(uniqExact(id) = count(), count(), 0) FROM events"
    return int(scalar(client, found))
