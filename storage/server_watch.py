"""Names the ClickHouse servers that don't answer.

A statement to a frozen server fails after minutes; this asks each server every second or two whether it is there.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from prometheus_client import Gauge

from schemas.health import Health
from storage.client import answers
from storage.shards import Shard

log = logging.getLogger(__name__)

PART: Final = "clickhouse"
_PAUSE_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 3.0
_FAILURES: Final = 2
"""In a row, after which a server counts as away: one may be a restart of a proxy, or a busy moment."""


async def watch_servers(
    shards: Sequence[Shard],
    health: Health,
    waiting: Gauge,
    answer: Callable[[str, float], bool] = answers,
    pause_seconds: float = _PAUSE_SECONDS,
) -> None:
    """Keep a part of `health` and a value of `waiting` for each server, until cancelled."""
    for shard in shards:
        health.set(shard.named(PART), ok=False, detail="no answer yet")
    async with asyncio.TaskGroup() as tasks:
        for shard in shards:
            tasks.create_task(_watch(shard, health, waiting, answer, pause_seconds))


async def _watch(
    shard: Shard, health: Health, waiting: Gauge, answer: Callable[[str, float], bool], pause_seconds: float
) -> None:
    part = shard.named(PART)
    failures, since = 0, datetime.now(UTC)
    while True:
        begun = datetime.now(UTC)
        if await asyncio.to_thread(answer, shard.url, _ANSWER_SECONDS):
            if failures >= _FAILURES:
                log.info("%s answers again", part, extra={"event": "clickhouse_recovered"})
            failures = 0
            health.set(part, ok=True)
        else:
            failures += 1
            since = begun if failures == 1 else since
            if failures == _FAILURES:
                log.warning("%s doesn't answer", part, extra={"event": "clickhouse_unresponsive"})
            if failures >= _FAILURES:
                health.set(part, ok=False, detail=f"no answer since {since:%H:%M:%S} UTC")
        waiting.labels(part).set(failures >= _FAILURES)
        await asyncio.sleep(pause_seconds)
