"""Runs one statement within limits, in a thread, and says in our words why it failed."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, LifoQueue
from typing import Annotated, Any, Final, Protocol, cast

from msgspec import Meta, Struct

from storage.client import ClickHouseError, Client, open_client
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.reader.parameters import Sql

log = logging.getLogger(__name__)

Rows = Sequence[tuple[Any, ...]]


class Limits(Struct, frozen=True):
    """What one call may use. Each is also bounded by the profile of the ClickHouse user."""

    seconds: Annotated[int, Meta(gt=0, description="time of one statement")] = 10
    memory_bytes: Annotated[int, Meta(gt=0, description="memory of one statement")] = 1 << 30
    rows: Annotated[int, Meta(gt=0, description="rows that one statement may read")] = 500_000_000
    threads: Annotated[int, Meta(gt=0, description="threads of one statement in ClickHouse")] = 2
    concurrency: Annotated[int, Meta(gt=0, description="statements at once; more wait")] = 8
    wait_seconds: Annotated[float, Meta(gt=0, description="longest wait for a turn")] = 5.0


class Executor(Protocol):
    """Answers statements; what `Reader` needs of ClickHouse."""

    async def rows(self, sql: Sql) -> Rows:
        """The rows of an answer. Raises QueryTooExpensive or StorageUnavailable."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


_WIDE: Final = frozenset({"use_top_k_dynamic_filtering"})
"""Settings that older servers don't know."""
_MEMORY: Final = 241
_EXPENSIVE: Final = {
    158: "reads too many rows",
    _MEMORY: "needs too much memory",
    307: "reads too many bytes",
    396: "has too large an answer",
    427: "has a pattern that is too large",
}
"""What an idle server would refuse, too. Time is not among it: how long a statement takes depends on what else runs."""
_SLOW: Final = frozenset({159, 160})
_BUSY: Final = frozenset({173, 202, 203, 243, 394, 439, 745})
_AWAY_CODES: Final = frozenset({209, 210, 236})
_FORBIDDEN_SETTING: Final = 452
_OWN_MEMORY: Final = ("Query memory limit", "(for query)")
"""The statement's own limit in the words of newer and older servers; what others use counts against any other."""


class ClickHouseExecutor:
    """Statements over a small pool of clients, each used by one thread at a time."""

    def __init__(self, url: str, limits: Limits) -> None:
        self._url = url
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._threads = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="read")
        self._idle: LifoQueue[Client] = LifoQueue()

    async def rows(self, sql: Sql) -> Rows:
        """The rows of an answer. Raises QueryTooExpensive or StorageUnavailable."""
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise StorageUnavailable("too many questions at once: ask again in a moment") from None
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._ask, sql)
        # The turn ends with the thread's work, not with the one who waits for it.
        running.add_done_callback(self._release_slot)
        try:
            return await asyncio.shield(running)
        except ClickHouseError as error:
            raise refusal(error) from error

    async def close(self) -> None:
        """Wait for what is running and close the clients."""
        await asyncio.to_thread(self._threads.shutdown)
        while not self._idle.empty():
            await asyncio.to_thread(self._idle.get_nowait().close)

    def _release_slot(self, done: "asyncio.Future[Rows]") -> None:
        self._slots.release()
        if not done.cancelled():
            done.exception()  # asked for, so that one whose asker has gone isn't reported as forgotten

    def _ask(self, sql: Sql) -> Rows:
        try:
            client = self._idle.get_nowait()
        except Empty:
            client = open_client(
                self._url,
                send_receive_timeout=self._limits.seconds + 5,
                query_retries=1,
                form_encode_query_params=True,
            )
        try:
            settings = {name: value for name, value in self._settings().items() if _known(client, name)}
            answer = client.query(
                sql.text,
                parameters=sql.values,
                settings=settings,
                column_formats=dict.fromkeys(sql.raw, "bytes"),
            )
            return cast(Rows, answer.result_rows)
        finally:
            self._idle.put(client)

    def _settings(self) -> dict[str, int]:
        return {
            "max_execution_time": self._limits.seconds,
            "max_memory_usage": self._limits.memory_bytes,
            "max_rows_to_read": self._limits.rows,
            "max_threads": self._limits.threads,
            # Costs several times what it saves on our tables.
            "use_top_k_dynamic_filtering": 0,
        }


def _known(client: Client, name: str) -> bool:
    return name not in _WIDE or name in client.server_settings


def refusal(error: ClickHouseError) -> Exception:
    """What a failure of the driver means to the asker; a mistake of ours stays what it is."""
    code = getattr(error, "code", None)
    if code is None or code in _AWAY_CODES:
        return StorageUnavailable("ClickHouse doesn't answer")
    if code in _SLOW:
        return StorageUnavailable("ClickHouse took too long: ask again in a moment, or for a shorter range")
    if code in _BUSY or (code == _MEMORY and not any(limit in str(error) for limit in _OWN_MEMORY)):
        return StorageUnavailable("ClickHouse is busy: ask again in a moment")
    if code == _FORBIDDEN_SETTING:
        log.error("the reading user's profile is narrower than our limits: %s", error)
        return StorageUnavailable(
            "the reading user's settings profile is narrower than the limits of the service"
        )
    if code in _EXPENSIVE:
        return QueryTooExpensive(f"the question {_EXPENSIVE[code]}: narrow the time range or the query")
    return error
