"""A planned block into the database: the ordinary insert, and the ways out when its token can't be relied on."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

import pyarrow as pa

from storage.client import Client, scalar
from storage.complete import complete, count_there
from storage.writer.blocks import Block
from storage.writer.insert import Inserter, RefusedData
from storage.writer.letters import Letters
from storage.writer.metrics import WriterMetrics
from storage.writer.plan import Plan

log = logging.getLogger(__name__)

Renew = Callable[[], Awaitable[None]]
TABLE: Final = "ingest"
_CLOCK_SECONDS: Final = 2
"""`uptime()` counts whole seconds."""


class Delivery:
    """Delivers blocks one at a time. `last_seconds` is what the last insert took."""

    def __init__(self, inserter: Inserter, letters: Letters, topic: str, metrics: WriterMetrics) -> None:
        self.last_seconds = 0.0
        self._inserter = inserter
        self._letters = letters
        self._topic = topic
        self._metrics = metrics

    async def deliver(self, block: Block, plan: Plan, renew: Renew) -> None:
        """Insert a block for the first time; returns when each of its rows is in every table, or set aside."""
        if len(block):
            rows = await self._inserter.run(lambda _client: block.columns.table())
            await self._insert(block, rows, plan, renew)
            self._metrics.event_age_seconds.observe(max(0.0, time.time() - block.oldest_ms / 1000))
        await self._letters.send(self._topic, block.refused)

    async def repeat(self, block: Block, plan: Plan, renew: Renew) -> None:
        """Insert a block that another process, or this one before a restart, may have inserted already or in part."""
        if len(block):
            rows = await self._inserter.run(lambda _client: block.columns.table())
            if await self._inserter.run(lambda client: count_there(client, rows), renew):
                await self._complete(block, rows, renew)
            else:
                await self._insert(block, rows, plan, renew, before=True)
        await self._letters.send(self._topic, block.refused)

    async def _insert(
        self, block: Block, rows: pa.Table, plan: Plan, renew: Renew, *, before: bool = False
    ) -> None:
        try:
            done = await self._inserter.insert(TABLE, rows, plan.token(self._topic), renew)
        except RefusedData as refusal:
            log.warning("a block of %d rows is refused: %s", rows.num_rows, refusal)
            await self._complete(block, rows, renew)
            return
        self.last_seconds = done.seconds
        # A server that was killed may remember the token of a part that it lost (`docs/decisions/writer.md`).
        if (before or done.tries > 1) and await self._inserter.run(
            lambda client: started_at(client) > plan.at_ms / 1000 - _CLOCK_SECONDS
        ):
            await self._complete(block, rows, renew)

    async def _complete(self, block: Block, rows: pa.Table, renew: Renew) -> None:
        done = await self._inserter.run(lambda client: complete(client, rows), renew)
        for table, count in done.rows.items():
            self._metrics.mended_rows.labels(table).inc(count)
        for row, reason in done.refused:
            project, number = rows["project_id"][row].as_py(), rows["id"][row].as_py()
            block.refused.append(block.refusal(row, project, number[::-1], reason))
        log.info("completed a block of %d rows", rows.num_rows, extra={"mended": done.rows})


def started_at(client: Client) -> float:
    """When the server was started (Unix time, by our clock)."""
    return time.time() - float(scalar(client, "SELECT uptime()"))
