"""`Reader`: the read port on ClickHouse."""

import time
from collections.abc import Callable
from typing import TypeVar

from storage.reader.execute import ClickHouseExecutor, Executor, Limits
from storage.reader.parameters import Sql
from storage.reader.port import ReadCall
from storage.reader.session import Session

A = TypeVar("A")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Reader:
    """Answers read calls (`storage.reader.port`); one instance serves any number at once, on one event loop."""

    def __init__(self, executor: Executor, now_ms: Callable[[], int] = _now_ms) -> None:
        self._session = Session(executor, now_ms)

    @classmethod
    def open(cls, url: str, limits: Limits | None = None) -> "Reader":
        """A reader of the database that the URL names; it connects with the first call."""
        return cls(ClickHouseExecutor(url, limits or Limits()))

    async def close(self) -> None:
        """Wait for running calls and close all connections."""
        await self._session.executor.close()

    async def ping(self) -> None:
        """Raises StorageUnavailable where the database doesn't answer."""
        await self._session.rows(Sql("SELECT 1", {}))

    async def read(self, call: ReadCall[A]) -> A:
        """The answer of a call. Raises ReadError."""
        return await call.answer(self._session)
