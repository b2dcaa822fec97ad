"""A planned block into the database: the ordinary insert, and the ways out when its token can't be relied on."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import pyarrow as pa

from storage.client import Client, started_at
from storage.repair.insert_pauses import any_since, in_force
from storage.repair.missing_rows import complete, presence
from storage.writer.blocks import Block
from storage.writer.dead_letters import DeadLetterWriter
from storage.writer.flush_policy import LastFlush
from storage.writer.inserter import Inserter, RefusedData
from storage.writer.manifest import BlockManifest
from storage.writer.metrics import WriterMetrics
from storage.writer.tokens import forgotten

log = logging.getLogger(__name__)

TABLE: Final = "ingest"
_ANY: Final = "SELECT 1 FROM events LIMIT 1"
_PAUSED_SECONDS: Final = 0.1
_CLOCK_SECONDS: Final = 2
"""`uptime()` counts whole seconds."""


class _Forgotten(Exception):
    """The token of a block that may be there already doesn't keep it from being inserted again."""


class Renewer:
    """Commits a plan again when it has become old: a process that was frozen finds out here that it was replaced."""

    fresh_seconds: Final = 5.0

    def __init__(self, plan: BlockManifest, commit: Callable[[BlockManifest], Awaitable[None]]) -> None:
        self.plan = plan
        self._commit = commit
        self._at = time.monotonic()

    async def __call__(self) -> None:
        """To be called just before each insert. Raises CommitFailedError."""
        if time.monotonic() - self._at > self.fresh_seconds:
            await self._commit(self.plan)
            self._at = time.monotonic()

    async def directly(self) -> None:
        """Tell whoever repeats the block that its token won't say everything from now on. Raises CommitFailedError."""
        if not self.plan.direct:
            self.plan = msgspec.structs.replace(self.plan, direct=True)
            await self._commit(self.plan)


class _Guard:
    """Ahead of each try of an insert: nobody may have asked for a pause, the plan must be ours, and from the second try on the first one's token must be known still."""

    def __init__(self, inserter: Inserter, renew: Renewer, *, repeats: bool) -> None:
        self._inserter = inserter
        self._renew = renew
        self._repeats = repeats

    async def __call__(self) -> None:
        """Raises _Forgotten, and CommitFailedError as `Renewer` does."""
        await self._wait_for_pauses()
        await self._renew()
        if self._repeats:
            planned = self._renew.plan.at_ms / 1000
            if await self._inserter.run(lambda client: forgotten(client, time.time() - planned)):
                raise _Forgotten
        self._repeats = True

    async def _wait_for_pauses(self) -> None:
        """Wait for those that are in force now; later ones wait for this insert."""
        left = await self._inserter.run(in_force)
        if left:
            log.debug("an insert waits while others compare tables")
        while left:
            await asyncio.sleep(_PAUSED_SECONDS)
            left &= await self._inserter.run(in_force)


class BlockInserter:
    """Delivers blocks one at a time; `last` is what the last one that was inserted took."""

    def __init__(
        self, inserter: Inserter, letters: DeadLetterWriter, topic: str, metrics: WriterMetrics
    ) -> None:
        self.last = LastFlush()
        self._inserter = inserter
        self._letters = letters
        self._topic = topic
        self._metrics = metrics

    async def deliver(self, block: Block, renew: Renewer) -> None:
        """Insert a block for the first time; returns when each of its rows is in every table, or set aside."""
        if len(block):
            rows = await self._inserter.run(lambda _client: block.columns.table())
            if block.by_id:
                await self._complete(block, rows, renew)
            else:
                await self._insert(block, rows, renew)
            self._metrics.event_age_seconds.observe(max(0.0, time.time() - block.oldest_ms / 1000))
        await self._letters.send(self._topic, block.refused, block.put_back)

    async def repeat(self, block: Block, renew: Renewer) -> None:
        """Insert a block that another process, or this one before a restart, may have inserted already or in part."""
        if len(block):
            rows = await self._inserter.run(lambda _client: block.columns.table())
            if renew.plan.direct or block.by_id or await self._is_moved(rows, renew):
                await self._complete(block, rows, renew)
            else:
                await self._insert(block, rows, renew, before=True)
        await self._letters.send(self._topic, block.refused, block.put_back)

    async def has_rows(self) -> bool:
        """Whether any event is stored."""
        return await self._inserter.run(lambda client: bool(client.query(_ANY).result_rows))

    async def _is_moved(self, rows: pa.Table, renew: Renewer) -> bool:
        """Whether rows are there under another retention: a token holds for each time partition alone, which that has made another."""
        found = await self._inserter.run(lambda client: presence(client, rows), renew)
        return found.moved

    async def _insert(self, block: Block, rows: pa.Table, renew: Renewer, *, before: bool = False) -> None:
        guard = _Guard(self._inserter, renew, repeats=before)
        try:
            done = await self._inserter.insert(TABLE, rows, renew.plan.token(self._topic), guard)
        except _Forgotten:
            log.info("the token of a block of %d rows may be forgotten", rows.num_rows)
            await self._complete(block, rows, renew)
            return
        except RefusedData as refusal:
            log.warning("a block of %d rows is refused: %s", rows.num_rows, refusal)
            await self._complete(block, rows, renew)
            return
        self.last = LastFlush(done.seconds, rows.num_rows, time.monotonic())
        planned = renew.plan.at_ms / 1000
        if (before or done.tries > 1) and await self._inserter.run(
            lambda client: _is_doubtful(client, planned)
        ):
            await self._complete(block, rows, renew)

    async def _complete(self, block: Block, rows: pa.Table, renew: Renewer) -> None:
        await renew.directly()
        token = renew.plan.token(self._topic)
        done = await self._inserter.run(lambda client: complete(client, rows, token), renew)
        for table, count in done.rows.items():
            self._metrics.repaired_rows.labels(table).inc(count)
        for row, reason in done.refused:
            project, number = rows["project_id"][row].as_py(), rows["id"][row].as_py()
            block.refused.append(block.refusal(row, project, number[::-1], reason))
        log.info("completed a block of %d rows", rows.num_rows, extra={"mended": done.rows})


def _is_doubtful(client: Client, planned: float) -> bool:
    """Whether a block that was planned at a time (Unix time) and inserted more than once may not be in every table once (`docs/decisions/writer.md`).

    A server that was killed may remember the token of a part that it lost. And who mended a rollup meanwhile took what a try had left out
    for missing, which the next try then inserted.
    """
    return started_at(client) > planned - _CLOCK_SECONDS or any_since(client, time.time() - planned)
