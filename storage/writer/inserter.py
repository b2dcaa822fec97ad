"""Inserts that wait: ClickHouse may be away, slow, read-only, out of disk or behind with its merges, and nothing is lost."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec import Struct

from schemas.health import Health
from storage.client import INSERT_SETTINGS, ClickHouseError, Client, open_client
from storage.diagnosis import ClickHouseFailure, FailureKind, diagnose
from storage.writer.metrics import WriterMetrics

log = logging.getLogger(__name__)

T = TypeVar("T")
Before = Callable[[], Awaitable[None]]
_PAUSES: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class RefusedData(Exception):
    """ClickHouse doesn't take these values."""

    def __init__(self, trouble: ClickHouseFailure) -> None:
        super().__init__(trouble.sentence)
        self.trouble = trouble


class Inserted(Struct, frozen=True):
    """An insert that went through: the seconds of the try that did, and how many there were."""

    seconds: float
    tries: int


def insert_settings(token: str) -> Mapping[str, Any]:
    """The settings of an insert whose repetition must not count."""
    return {**INSERT_SETTINGS, "insert_deduplication_token": token}


class Inserter:
    """Statements against one database, one at a time in a thread of their own; `part` names it in health and log."""

    def __init__(self, url: str, part: str, health: Health, metrics: WriterMetrics) -> None:
        self._url = url
        self._part = part
        self._health = health
        self._metrics = metrics
        self._client: Client | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=part)
        health.set(part, ok=True)

    def close(self) -> None:
        """Let go of the server; a statement under way is finished in its thread."""
        self._thread.submit(self._drop)
        self._thread.shutdown(wait=False)

    async def insert(self, table: str, rows: pa.Table, token: str, before: Before | None = None) -> Inserted:
        """Insert until the server has taken it; returns the seconds of the try that did. Raises RefusedData.

        `before` is called ahead of each try, and may raise to give the block up.
        """
        tries = 0

        def once(client: Client) -> float:
            nonlocal tries
            tries += 1
            started = time.monotonic()
            client.insert_arrow(table, rows, settings=dict(insert_settings(token)))
            return time.monotonic() - started

        seconds = await self.run(once, before)
        self._metrics.rows.labels(table).inc(rows.num_rows)
        self._metrics.block_rows.labels(table).observe(rows.num_rows)
        self._metrics.insert_seconds.labels(table).observe(seconds)
        return Inserted(seconds=seconds, tries=tries)

    async def run(self, work: Callable[[Client], T], before: Before | None = None) -> T:
        """Do `work` with a client, again and again until the server lets it. Raises RefusedData."""
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

    async def _wait(self, trouble: ClickHouseFailure, tries: int) -> None:
        self._metrics.failures.labels(self._part, trouble.reason).inc()
        if trouble.kind is FailureKind.REFUSED:
            raise RefusedData(trouble)
        self._metrics.waiting.labels(self._part).set(1)
        self._health.set(self._part, ok=False, detail=trouble.sentence)
        log.warning("%s waits: %s", self._part, trouble.sentence, extra={"tries": tries + 1})
        await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])

    def _recovered(self, tries: int) -> None:
        if tries:
            log.info("%s goes on after %d tries", self._part, tries + 1)
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
