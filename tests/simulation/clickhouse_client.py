"""clickhouse-connect's client on the model of a server. It blocks its fiber."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from clickhouse_connect.driver.exceptions import Error, OperationalError

from storage.exactly_once import insert_pauses
from tests.simulation.clickhouse import Answer, Server
from tests.simulation.clickhouse_shards import Whole
from tests.simulation.clickhouse_tables import FED
from tests.simulation.clickhouse_work import Work, work_off
from tests.simulation.world import Process

_LOST: Final = 0.04
"""The share of answers that are lost."""
_NO_SESSION: Final = 372


class Client:
    """A client of clickhouse-connect, which blocks its fiber."""

    server_version = "26.3.1.1"

    database = "d"

    def __init__(self, target: Server | Whole, latency: Callable[[], float], timeout: float) -> None:
        self._target = target
        self._latency = latency
        self._timeout = timeout

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        external_data: Any = None,
        settings: Any = None,
        column_formats: Any = None,
    ) -> Answer:
        """Rows of a statement; texts that are asked for as bytes are bytes in the model."""
        rows = self._call(self._target.query(sql, parameters or {}, external_data), settings)
        if sql == insert_pauses.IN_FORCE:
            self._server.look(self._process, rows)
        return Answer(rows)

    def get_client_setting(self, _key: str) -> None:
        """The servers of the model have no replicas."""

    @property
    def _process(self) -> Process:
        return self._target.world._current().process

    @property
    def _server(self) -> Server:
        assert isinstance(self._target, Server), "nothing is inserted into the database over all servers"
        return self._target

    @contextmanager
    def query_row_block_stream(
        self, sql: str, parameters: Mapping[str, Any] | None = None
    ) -> Iterator[Iterator[Any]]:
        """Blocks of rows of a statement."""
        rows = self._call(self._target.query(sql, parameters or {}, None))
        yield iter([rows] if rows else [])

    def raw_query(self, sql: str, fmt: str, settings: Any = None, external_data: Any = None) -> bytes:
        """Rows in a format of the server's."""
        rows = self._call(self._target.query(sql, {}, external_data), settings)
        return pickle.dumps(rows) if rows else b""

    def command(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Any = None,
        external_data: Any = None,
    ) -> Any:
        """A statement that changes something."""
        return self._call(self._target.query(sql, parameters or {}, external_data))

    def insert(self, table: str, rows: Sequence[Sequence[Any]], column_names: Sequence[str]) -> None:
        """Insert rows of Python values."""
        self._call(self._server.insert_rows(table, rows, column_names))

    def insert_arrow(self, table: str, rows: pa.Table, settings: Mapping[str, Any] | None = None) -> None:
        """Insert rows."""
        token = str((settings or {}).get("insert_deduplication_token", ""))
        if table == "ingest":
            self._server.heed(self._process)
            mishap, self._server.mishap = self._server.mishap, ""
            if mishap == "frozen before an insert":
                self._freeze(20.0, 40.0)
            work = self._server.insert_events(rows, token)
            if mishap == "lost answer":
                self._call(work, settings)
                self._freeze(3.0, 4.5)
                raise OperationalError("the answer is lost")
        elif table in FED:
            work = self._server.insert_into(table, rows, token)
        else:
            work = self._server.insert_latest(table, rows, token)
        self._call(work, settings)

    def raw_insert(
        self, table: str, columns: Any, rows: bytes, settings: Mapping[str, Any], fmt: str
    ) -> Answer:
        """Insert rows that `raw_query` returned."""
        token = str(settings.get("insert_deduplication_token", ""))
        return Answer(written=self._call(self._server.insert_counts(table, rows, token), settings))

    def close(self) -> None:
        """Close."""

    def _freeze(self, least: float, most: float) -> None:
        self._process.freeze(self._server.world.random.uniform(least, most))
        self._process.step()

    def _call(self, work: Work, settings: Mapping[str, Any] | None = None) -> Any:
        target, world = self._target, self._target.world
        fiber = world._current()
        fiber.process.step()
        answers: list[tuple[Any, BaseException | None]] = []

        def answer(result: Any, error: BaseException | None) -> None:
            if not answers:
                answers.append((result, error))
                fiber.resume()

        def done(result: Any, error: BaseException | None) -> None:
            target.renew(settings or {})
            if error is None and target.is_unsteady() and world.random.random() < _LOST:
                error = OperationalError("the connection is lost")
            world.after(self._latency(), lambda: answer(result, error))

        def arrive() -> None:
            if not target.is_up:
                answer(None, OperationalError("connection refused"))
            elif not target.admits(settings or {}):
                answer(None, Error("the session is not found", code=_NO_SESSION))
            else:
                work_off(target, work, done)

        world.after(self._latency(), arrive)
        world.after(self._timeout, lambda: answer(None, OperationalError("timed out")))
        fiber.pause()
        fiber.process.step()
        result, error = answers[0]
        if error is not None:
            raise error
        return result
