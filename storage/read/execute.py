"""Runs SQL statements in threads, within limits, and translates the driver's errors."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from queue import Empty, LifoQueue
from typing import Annotated, Any, Final, cast

from msgspec import Meta, Struct

from storage.client import ClickHouseError, Client, answers, open_client
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.shards import WHOLE_SETTINGS

log = logging.getLogger(__name__)

Rows = Sequence[tuple[Any, ...]]
_Answer = tuple[Rows, bool]
"""Rows, and whether those of a server are missing."""


_note: Final[ContextVar["Note | None"]] = ContextVar("partial", default=None)


class Note:
    """Whether the reads of one answer are partial: they lack the rows of a server that did not answer."""

    is_partial = False


@contextmanager
def track_partial() -> Iterator[Note]:
    """A note of the reads in the `with` block, also of those in tasks that begin there."""
    note = Note()
    token = _note.set(note)
    try:
        yield note
    finally:
        _note.reset(token)


def is_partial() -> bool:
    """Whether a read since the beginning of the innermost `track_partial` is partial."""
    note = _note.get()
    return note is not None and note.is_partial


class Sql(Struct, frozen=True):
    """The text of a statement and the values of its placeholders.

    `raw` names the columns that contain bytes.
    """

    text: str
    values: dict[str, object]
    raw: tuple[str, ...] = ()


class Limits(Struct, frozen=True):
    """Limits of one call. The settings profile of the ClickHouse user may be narrower."""

    seconds: Annotated[int, Meta(gt=0, description="time of one statement")] = 10
    memory_bytes: Annotated[int, Meta(gt=0, description="memory of one statement")] = 1 << 30
    rows: Annotated[int, Meta(gt=0, description="rows that one statement may read")] = 500_000_000
    threads: Annotated[int, Meta(gt=0, description="threads of one statement in ClickHouse")] = 2
    concurrency: Annotated[int, Meta(gt=0, description="concurrent statements; more wait")] = 8
    grace_seconds: Annotated[
        int, Meta(gt=0, description="time beyond `seconds` for the answer to arrive")
    ] = 5
    wait_seconds: Annotated[float, Meta(gt=0, description="longest wait for a turn")] = 5.0


_OPTIONAL_SETTINGS: Final = frozenset({"use_top_k_dynamic_filtering"})
"""Settings that older servers don't have."""
_MEMORY: Final = 241
_SHARD: Final = 279
_NO_SHARD: Final = {_SHARD, 209, 210}
"""Also of a shard that stops answering in the middle of a statement."""
_DENIED: Final = 497
_PING_SECONDS: Final = 2.0
_PARTIAL_SETTINGS: Final = {
    # A frozen server takes connections and says nothing: by default three tries of ten seconds.
    "handshake_timeout_ms": 1000,
    "connect_timeout_with_failover_ms": 1000,
    "connections_with_failover_max_tries": 1,
    # A working server reports its progress.
    "receive_timeout": 5,
}
"""For statements of which an unavailable server is left out."""
_EXPENSIVE: Final = {
    158: "reads too many rows",
    _MEMORY: "needs too much memory",
    307: "reads too many bytes",
    396: "has too large an answer",
    427: "has a pattern that is too large",
}
"""Limits that an idle server exceeds too. Timeouts are not among them, because they depend on load."""
_BUSY: Final = "ClickHouse is busy: try again in a moment"
_UNAVAILABLE: Final[dict[int | None, str]] = {
    **dict.fromkeys((None, 209, 210, 236), "ClickHouse doesn't answer"),
    _SHARD: "a shard of ClickHouse doesn't answer",
    **dict.fromkeys((159, 160), "ClickHouse took too long: try again in a moment, or with a shorter range"),
    **dict.fromkeys((173, 202, 203, 243, 394, 439, 745), _BUSY),
    **dict.fromkeys((194, 516), "ClickHouse refuses the reading user or its password"),
    _DENIED: "the reading user lacks a right on ClickHouse",
}
_FORBIDDEN_SETTING: Final = 452
_OWN_MEMORY: Final = ("Query memory limit", "(for query)")
"""Messages of newer and older servers for the statement's own memory limit; other limits are shared with
other statements."""


class Executor:
    """Runs statements on a small pool of clients; each is used by one thread at a time.

    With `partial`, a statement over several servers leaves out those that don't answer, and the answer's
    `Note` says so.
    """

    def __init__(self, urls: Sequence[str], limits: Limits, *, partial: bool = False) -> None:
        self._urls = urls
        self._limits = limits
        self._partial = partial
        self._entry = 0
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._threads = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="read")
        self._idle: LifoQueue[Client] = LifoQueue()

    async def rows(self, sql: Sql) -> Rows:
        """The rows that a statement returns. Raises QueryTooExpensive or StorageUnavailable."""
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise StorageUnavailable("too many concurrent requests: try again in a moment") from None
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._query, sql)
        # The slot is freed when the thread finishes, even if the caller was cancelled.
        running.add_done_callback(self._release_slot)
        try:
            rows, lacks_rows = await asyncio.shield(running)
        except ClickHouseError as error:
            raise refusal(error) from error
        if lacks_rows and (note := _note.get()) is not None:
            note.is_partial = True
        return rows

    async def close(self) -> None:
        """Wait for running statements and close the clients."""
        await asyncio.to_thread(self._threads.shutdown)
        while not self._idle.empty():
            await asyncio.to_thread(self._idle.get_nowait().close)

    def _release_slot(self, done: "asyncio.Future[_Answer]") -> None:
        self._slots.release()
        if not done.cancelled():
            done.exception()  # marks it as retrieved, in case the caller was cancelled

    def _query(self, sql: Sql) -> _Answer:
        client = self._client()
        try:
            return self._ask(client, sql)
        except ClickHouseError as error:
            if len(self._urls) < 2 or getattr(error, "code", None) is not None:
                raise
            # This server doesn't answer; another one may.
            client.close()
            client = self._open()
            return self._ask(client, sql)
        finally:
            self._idle.put(client)

    def _ask(self, client: Client, sql: Sql) -> _Answer:
        try:
            return self._rows(client, sql), False
        except ClickHouseError as error:
            if not self._partial or getattr(error, "code", None) not in _NO_SHARD:
                raise
            return self._rows(client, sql, skip_unavailable_shards=1), True

    def _client(self) -> Client:
        """An idle client, or a new one. Of several servers, one that answers now: some may be frozen."""
        try:
            client = self._idle.get_nowait()
        except Empty:
            return self._open()
        if len(self._urls) < 2 or client.ping(_PING_SECONDS):
            return client
        client.close()
        return self._open()

    def _rows(self, client: Client, sql: Sql, **more: int) -> Rows:
        settings = more | {
            name: value
            for name, value in self._settings().items()
            if name not in _OPTIONAL_SETTINGS or name in client.server_settings
        }
        answer = client.query(
            sql.text,
            parameters=sql.values,
            settings=settings,
            column_formats=dict.fromkeys(sql.raw, "bytes"),
        )
        return cast(Rows, answer.result_rows)

    def _open(self) -> Client:
        """A client of the server that answered last, else of the next that answers."""
        for _ in self._urls[1:]:
            if answers(url := self._urls[self._entry], _PING_SECONDS):
                with suppress(ClickHouseError):
                    return self._client_of(url)
            self._entry = (self._urls.index(url) + 1) % len(self._urls)
        return self._client_of(self._urls[self._entry])

    def _client_of(self, url: str) -> Client:
        return open_client(
            url,
            send_receive_timeout=self._limits.seconds + self._limits.grace_seconds,
            query_retries=1,
            form_encode_query_params=True,
        )

    def _settings(self) -> dict[str, int | str]:
        return {
            **(WHOLE_SETTINGS if len(self._urls) > 1 else {}),
            **(_PARTIAL_SETTINGS if self._partial else {}),
            "max_execution_time": self._limits.seconds,
            "max_memory_usage": self._limits.memory_bytes,
            "max_rows_to_read": self._limits.rows,
            "max_threads": self._limits.threads,
            # Costs several times more than it saves on these tables.
            "use_top_k_dynamic_filtering": 0,
        }


def refusal(error: ClickHouseError) -> Exception:
    """The ReadError for an error of the driver; an error in our own SQL is returned unchanged."""
    code = getattr(error, "code", None)
    if code == _DENIED:
        log.error(
            "ClickHouse refuses a read: %s", " ".join(str(error).split()), extra={"event": "read_refused"}
        )
    if code in _UNAVAILABLE:
        return StorageUnavailable(_UNAVAILABLE[code])
    if code == _MEMORY and not any(limit in str(error) for limit in _OWN_MEMORY):
        return StorageUnavailable(_BUSY)
    if code == _FORBIDDEN_SETTING:
        log.error(
            "the settings profile of the reading user is narrower than the limits of the service: %s",
            error,
            extra={"event": "reader_profile_too_narrow"},
        )
        return StorageUnavailable(
            "the settings profile of the reading user is narrower than the limits of the service"
        )
    if code in _EXPENSIVE:
        return QueryTooExpensive(f"the request {_EXPENSIVE[code]}: narrow the time range or the query")
    return error
