"""Inserts into ClickHouse: when (`FlushPolicy`), with retries (`Inserter`), and as blocks that can be repeated (`BlockInserter`).

ClickHouse may be unavailable, slow, read-only, out of disk or behind with its merges: an insert waits, and nothing is lost.

An insert costs the server about the same whatever its size (60 ms of CPU for 100 rows, 70 for 2,000, with all rollups), so blocks wait:
shortly under little load, and in proportion to the last insert's duration, so that inserts fill at most a quarter of the time. Under
load, as measured by the last block, the longest wait is best.

A block is repeated under its deduplication token, unless the token can't be relied on: a table may have forgotten it, or the server
may remember it without the rows. Then the block is completed: missing rows are found by ids and inserted (`docs/decisions/writer.md`).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
from msgspec import Struct

from schemas.health import Health
from storage.client import INSERT_SETTINGS, ClickHouseError, Client, begin_session, open_client
from storage.diagnosis import ClickHouseFailure, FailureKind, diagnose
from storage.writer.blocks import Block, BlockManifest
from storage.writer.dead_letters import DeadLetterWriter
from storage.writer.insert_pauses import in_force
from storage.writer.metrics import WriterMetrics
from storage.writer.missing_rows import any_known, complete
from storage.writer.server_state import server_state
from storage.writer.tokens import ServerMark, is_doubtful, is_forgotten

_WAIT_FACTOR: Final = 3.0
"""Wait this many times the last insert's duration."""
BUSY_ROWS: Final = 200
"""Rows of a block that indicate load. After the short wait it is a thousand rows a second; two hundred a second continue it."""


class LastFlush(Struct, frozen=True):
    """The last block: seconds of its insert, its rows, and when it ended (a monotonic clock's seconds)."""

    seconds: float = 0.0
    rows: int = 0
    at: float = 0.0


class FlushPolicy(Struct, frozen=True):
    """Decides when a block is inserted, by settings in rows, bytes and seconds. Pure."""

    block_rows: int
    block_bytes: int
    quiet_seconds: float
    wait_seconds: float

    def full(self, rows: int, size: int) -> bool:
        """Whether the block must not grow further."""
        return rows >= self.block_rows or size >= self.block_bytes

    def recent(self, last: LastFlush, now: float) -> LastFlush:
        """The last block as a new block should consider it: none, after a time without blocks."""
        return last if now - last.at < self.wait_seconds else LastFlush()

    def remaining(self, rows: int, size: int, age: float, last: LastFlush) -> float:
        """Seconds until a block of this age is to be inserted; 0 for now."""
        if self.full(rows, size):
            return 0.0
        wait = self.wait_seconds
        if last.rows < BUSY_ROWS:
            wait = min(max(self.quiet_seconds, _WAIT_FACTOR * last.seconds), wait)
        return max(0.0, wait - age)


log = logging.getLogger(__name__)

T = TypeVar("T")
Before = Callable[[], Awaitable[None]]
Guard = Callable[[], Awaitable[Mapping[str, Any]]]
_PAUSES: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class RefusedData(Exception):
    """ClickHouse refuses these values."""


class Inserted(Struct, frozen=True):
    """A successful insert: the duration of the last try, and the number of tries."""

    seconds: float
    tries: int


def insert_settings(token: str) -> Mapping[str, Any]:
    """The settings of an insert that may be repeated under its token."""
    return {**INSERT_SETTINGS, "insert_deduplication_token": token}


class Inserter:
    """Runs statements one at a time in its own thread; `part` names it in health and log."""

    def __init__(self, url: str, part: str, health: Health, metrics: WriterMetrics) -> None:
        self._url = url
        self._part = part
        self._health = health
        self._metrics = metrics
        self._client: Client | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=part)
        health.set(part, ok=True)

    def close(self) -> None:
        """Close the connection; a statement in progress finishes in its thread."""
        self._thread.submit(self._drop)
        self._thread.shutdown(wait=False)

    async def insert(
        self, table: str, rows: pa.Table, token: str = "", guard: Guard | None = None
    ) -> Inserted:
        """Insert, with retries until the server accepts it. Raises RefusedData. Tables that collapse equal rows need no token.

        `guard` is awaited before each try, and returns more settings for it; its exceptions end the insert.
        """
        tries = 0
        more: Mapping[str, Any] = {}

        async def before() -> None:
            nonlocal more
            more = await guard() if guard is not None else {}

        def once(client: Client) -> float:
            nonlocal tries
            tries += 1
            started = time.monotonic()
            client.insert_arrow(table, rows, settings={**insert_settings(token), **more})
            return time.monotonic() - started

        seconds = await self.run(once, before)
        self._metrics.rows.labels(table).inc(rows.num_rows)
        self._metrics.block_rows.labels(table).observe(rows.num_rows)
        self._metrics.insert_seconds.labels(table).observe(seconds)
        return Inserted(seconds=seconds, tries=tries)

    async def run(self, work: Callable[[Client], T], before: Before | None = None) -> T:
        """Run `work` with a client, with retries until it succeeds. Raises RefusedData."""
        tries = 0
        while True:
            if before is not None:
                await before()
            try:
                result = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._with_client, work
                )
            except ClickHouseError as error:
                await self._wait(diagnose(error), tries)
                tries += 1
            else:
                self._recovered(tries)
                return result

    async def _wait(self, failure: ClickHouseFailure, tries: int) -> None:
        self._metrics.failures.labels(self._part, failure.reason).inc()
        if failure.kind is FailureKind.REFUSED:
            raise RefusedData(failure.sentence)
        self._metrics.waiting.labels(self._part).set(1)
        self._health.set(self._part, ok=False, detail=failure.sentence)
        log.warning("%s is waiting: %s", self._part, failure.sentence, extra={"tries": tries + 1})
        await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])

    def _recovered(self, tries: int) -> None:
        if tries:
            log.info("%s continues after %d tries", self._part, tries + 1)
        self._metrics.waiting.labels(self._part).set(0)
        self._health.set(self._part, ok=True)

    def _with_client(self, work: Callable[[Client], T]) -> T:
        if self._client is None:
            self._client = open_client(self._url)
        try:
            return work(self._client)
        except ClickHouseError:
            self._drop()
            raise
        except OSError as error:
            self._drop()
            raise ClickHouseError(str(error)) from error

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


TABLE: Final = "ingest"
_ANY: Final = """
    SELECT 1 FROM (SELECT 1 FROM events LIMIT 1 UNION ALL SELECT 1 FROM erased_events LIMIT 1) LIMIT 1"""
_PAUSED_SECONDS: Final = 0.1
_INSERT_SECONDS: Final = 2
"""How long an insert may take from its checks to the server: less than Kafka takes to give the partition to another writer."""
_ADMITTED_SECONDS: Final = 5.0
"""After these, no insert arrives whose writer had looked for pauses before: its session has ended."""
_MARK_BLOCKS: Final = 100
"""Blocks that are planned with one mark: an older mark only makes their tokens count as forgotten a little earlier."""


class _Forgotten(Exception):
    """The token may be forgotten: it may no longer prevent a second insert of the block."""


class Renewer:
    """Records a plan, and again once that is old: a process that was frozen detects here that it was replaced."""

    fresh_seconds: Final = 5.0

    def __init__(self, plan: BlockManifest, record: Callable[[BlockManifest], Awaitable[None]]) -> None:
        self.plan = plan
        self._record = record
        self._at = -inf

    async def __call__(self, *, always: bool = False) -> None:
        """Await it before each insert. Raises CommitFailedError."""
        # From before it is recorded: the process may be frozen before it hears that it was.
        now = time.monotonic()
        if always or now - self._at > self.fresh_seconds:
            await self._record(self.plan)
            self._at = now

    async def mark_direct(self) -> None:
        """Record that tables may have rows of the block without its token from now on. Raises CommitFailedError."""
        if not self.plan.direct:
            self.plan = msgspec.structs.replace(self.plan, direct=True)
            await self._record(self.plan)


class _Guard:
    """Checks before each try of an insert: no pause is in force, the plan is ours, and before a repeat the token can still be relied on.

    The server takes the insert for a few seconds only: others may complete the block while this process is frozen.
    """

    def __init__(self, inserter: Inserter, renew: Renewer, *, repeats: bool) -> None:
        self._inserter = inserter
        self._renew = renew
        self._repeats = repeats

    async def __call__(self) -> Mapping[str, Any]:
        """Returns settings of the insert. Raises _Forgotten, and CommitFailedError like `Renewer`."""
        # Before what is checked below, so that nothing of it is older than the session.
        session = await self._begin_session()
        waited = await self._wait_for_pauses()
        if waited:
            session = await self._begin_session()
        await self._renew(always=waited)
        if self._repeats:
            state, mark = await self._inserter.run(server_state), self._renew.plan.mark
            if is_forgotten(mark, state) or is_doubtful(mark, state):
                raise _Forgotten
        self._repeats = True
        return session

    async def _begin_session(self) -> Mapping[str, Any]:
        return await self._inserter.run(lambda client: begin_session(client, _INSERT_SECONDS))

    async def _wait_for_pauses(self) -> bool:
        """Wait for the pauses in force now; later ones wait for this insert. Returns whether there was one."""
        pauses = await self._inserter.run(in_force)
        if pauses:
            log.debug("waiting: others are comparing tables")
        left = set(pauses)
        while left:
            await asyncio.sleep(_PAUSED_SECONDS)
            left &= await self._inserter.run(in_force)
        return bool(pauses)


class BlockInserter:
    """Inserts blocks one at a time; `last` describes the last one."""

    def __init__(
        self, inserter: Inserter, dead_letters: DeadLetterWriter, topic: str, metrics: WriterMetrics
    ) -> None:
        self.last = LastFlush()
        self._inserter = inserter
        self._dead_letters = dead_letters
        self._topic = topic
        self._metrics = metrics
        self._mark: ServerMark | None = None
        self._marked = 0

    async def mark(self) -> ServerMark:
        """The server's mark for the plan of the next block. Waits for the server."""
        if self._mark is None or self._marked >= _MARK_BLOCKS:
            self._mark, self._marked = (await self._inserter.run(server_state)).mark, 0
        self._marked += 1
        return self._mark

    async def deliver(self, block: Block, renew: Renewer) -> None:
        """Insert a block for the first time; on return each row is in every table, or in the dead letters."""
        if len(block):
            rows = await self._inserter.run(lambda _client: block.columns.table())
            if block.by_id:
                await self._complete(block, rows, renew)
            else:
                await self._insert(block, rows, renew)
            self._metrics.event_age_seconds.observe(max(0.0, time.time() - block.oldest_ms / 1000))
        await self._dead_letters.send(self._topic, block.rejected, block.put_back)

    async def replay(self, block: Block, renew: Renewer) -> None:
        """Insert a block that another process, or this one before a restart, may have inserted wholly or in part.

        Where some of it is stored, or was and is erased, it is completed: an erasure takes tokens along.
        """
        if len(block):
            rows = await self._inserter.run(lambda _client: block.columns.table())
            if (
                renew.plan.direct
                or block.by_id
                or await self._inserter.run(lambda client: any_known(client, rows))
            ):
                await self._complete(block, rows, renew)
            else:
                await self._insert(block, rows, renew, repeats=True)
        await self._dead_letters.send(self._topic, block.rejected, block.put_back)

    async def has_rows(self) -> bool:
        """Whether any event is stored, or was and is erased."""
        return await self._inserter.run(lambda client: bool(client.query(_ANY).result_rows))

    async def _insert(self, block: Block, rows: pa.Table, renew: Renewer, *, repeats: bool = False) -> None:
        guard = _Guard(self._inserter, renew, repeats=repeats)
        try:
            done = await self._inserter.insert(TABLE, rows, renew.plan.token(self._topic), guard)
        except _Forgotten:
            log.info("the token of a block of %d rows may be forgotten: completing it", rows.num_rows)
            await self._complete(block, rows, renew)
            return
        except RefusedData as refusal:
            log.warning("a block of %d rows is refused, completing it: %s", rows.num_rows, refusal)
            await self._complete(block, rows, renew)
            return
        self.last = LastFlush(done.seconds, rows.num_rows, time.monotonic())
        if repeats or done.tries > 1:
            state = await self._inserter.run(server_state)
            if is_doubtful(renew.plan.mark, state):
                await self._complete(block, rows, renew)

    async def _complete(self, block: Block, rows: pa.Table, renew: Renewer) -> None:
        # The server was started, or paused inserts, since the mark: another block would be completed for the same reason.
        self._mark = None
        await renew.mark_direct()
        token = renew.plan.token(self._topic)
        # Nobody inserts a block that is to be completed by ids.
        seconds = 0.0 if block.by_id else _ADMITTED_SECONDS
        done = await self._inserter.run(lambda client: complete(client, rows, token, seconds), renew)
        for table, count in done.rows.items():
            self._metrics.repaired_rows.labels(table).inc(count)
        for row, reason in done.refused:
            project, number = rows["project_id"][row].as_py(), rows["id"][row].as_py()
            block.rejected.append(block.rejection(row, project, number[::-1], reason))
        log.info("completed a block of %d rows", rows.num_rows, extra={"repaired": done.rows})
