"""Runs statements on ClickHouse with retries.

It may be unavailable, slow, read-only, out of disk or behind with its merges: an insert waits, and nothing is
lost.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec import Struct

from schemas.health import Health
from storage.clickhouse_diagnosis import ClickHouseFailure, FailureKind, diagnose
from storage.client import INSERT_SETTINGS, ClickHouseError, Client, open_client
from storage.write.writer_metrics import WriterMetrics

log = logging.getLogger(__name__)
T = TypeVar("T")
Before = Callable[[], Awaitable[None]]
Guard = Callable[[], Awaitable[Mapping[str, Any]]]
_PAUSES: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class RefusedData(Exception):
    """ClickHouse refuses these values."""


class WrongStatement(Exception):
    """ClickHouse can't run the statement, however often it is tried."""


class Inserted(Struct, frozen=True):
    """A successful insert: the duration of the last try, and the number of tries."""

    seconds: float
    tries: int


class Inserter:
    """Runs statements one at a time in its own thread.

    `part` names it in health and log, `check` precedes each connection.
    """

    def __init__(
        self,
        url: str,
        part: str,
        health: Health,
        metrics: WriterMetrics,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._url = url
        self._check = check
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
        """Insert, with retries until the server accepts it. Raises RefusedData and WrongStatement.

        Tables that collapse equal rows need no token. `guard` is awaited before each try, and returns more
        settings for it; its exceptions end the insert.
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
            settings = {**INSERT_SETTINGS, "insert_deduplication_token": token, **more}
            client.insert_arrow(table, rows, settings=settings)
            return time.monotonic() - started

        seconds = await self.run(once, before)
        self._metrics.rows.labels(table).inc(rows.num_rows)
        self._metrics.block_rows.labels(table).observe(rows.num_rows)
        self._metrics.insert_seconds.labels(table).observe(seconds)
        return Inserted(seconds=seconds, tries=tries)

    async def run(self, work: Callable[[Client], T], before: Before | None = None) -> T:
        """Run `work` with a client, with retries until it succeeds. Raises RefusedData and WrongStatement."""
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
        self._health.set(self._part, ok=False, detail=failure.sentence)
        if failure.kind is FailureKind.WRONG:
            log.error(
                "ClickHouse refuses %s, stopping: %s",
                self._part,
                failure.sentence,
                extra={"event": "insert_refused"},
            )
            raise WrongStatement(f"{self._part}: {failure.sentence}")
        self._metrics.waiting.labels(self._part).set(1)
        log.warning(
            "ClickHouse can't take %s, retrying: %s",
            self._part,
            failure.sentence,
            extra={"event": "insert_retried", "tries": tries + 1},
        )
        await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])

    def _recovered(self, tries: int) -> None:
        if tries:
            log.info(
                "ClickHouse takes %s again after %d tries",
                self._part,
                tries + 1,
                extra={"event": "insert_recovered"},
            )
        self._metrics.waiting.labels(self._part).set(0)
        self._health.set(self._part, ok=True)

    def _with_client(self, work: Callable[[Client], T]) -> T:
        try:
            if self._client is None:
                self._check()
                self._client = open_client(self._url)
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
