"""ClickHouse's tables, real and modelled, behind the few operations of a history."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, Protocol

import pyarrow as pa

from storage.clickhouse_diagnosis import diagnose
from storage.client import INSERT_SETTINGS, ClickHouseError, Client, open_client
from storage.exactly_once.block_tokens import ServerMark
from storage.tables import record_rows
from storage.tables.rollups import ROLLUPS
from tests.integration.simulation.virtual import in_fiber
from tests.simulation import clickhouse_client
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_tables import FED
from tests.simulation.world import World

ROLLUP_NAMES = tuple(rollup.table for rollup in ROLLUPS)
LATEST: Final = {
    "issues": record_rows.ISSUES,
    "issue_activity": record_rows.ISSUE_ACTIVITY,
    "outcomes": record_rows.OUTCOMES,
    "projects": record_rows.PROJECTS,
}
"""The tables that collapse equal keys."""
State = dict[str, Any]
"""The contents of a server's tables.

For `events` and `payloads`, how often each (project, id, days) is there; for each rollup, the events by
(project, day, retention)."""


class Store(Protocol):
    """Faults of a history on a server, in addition to the product's functions and a client."""

    client: Client
    marks: dict[str, ServerMark]
    """Of each planned block, by its token."""

    def lose(self, table: str, project: int, ids: Iterable[bytes]) -> None:
        """Lose rows of `events` or `payloads`, or of a rollup a project's; tokens stay."""

    def refuse(self, ids: Sequence[bytes]) -> None:
        """Refuse the rows with these ids in `events`, and no others."""

    def state(self) -> State:
        """The rows of the tables."""

    def latest(self, table: str) -> list[list[str]]:
        """The rows of a table that collapses equal keys, as texts in order."""


def insert(store: Store, rows: pa.Table, token: str, table: str = "ingest") -> str:
    """Insert under a token; "" or how the failure is classified."""
    settings = {**INSERT_SETTINGS, "insert_deduplication_token": token}
    try:
        store.client.insert_arrow(table, rows, settings=settings)
    except ClickHouseError as error:
        return diagnose(error).kind.value
    return ""


def _number(number: bytes) -> int:
    return int.from_bytes(number, "little")


class RealStore:
    """A database with all tables on a real server."""

    def __init__(self, url: str) -> None:
        self.client = open_client(url)
        self.marks: dict[str, ServerMark] = {}
        self._refuses = False

    def empty(self, window: int) -> None:
        """Empty the tables, and let each remember so many tokens."""
        for table in ("erasures", "erased_counts", "erased_events", "erasing", "erasing_tags"):
            self.client.command(f"TRUNCATE TABLE {table}")
        for table in FED:
            self.client.command(f"TRUNCATE TABLE {table}")
            self.client.command(
                f"ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = {window}"
            )

    def lose(self, table: str, project: int, ids: Iterable[bytes]) -> None:
        some = ", ".join(f"toUInt128('{_number(number)}')" for number in ids)
        where = f" AND id IN ({some})" if table not in ROLLUP_NAMES else ""
        self.client.command(
            f"ALTER TABLE {table} DELETE WHERE project_id = {project}{where} SETTINGS mutations_sync = 1"
        )

    def refuse(self, ids: Sequence[bytes]) -> None:
        if self._refuses:
            self.client.command("ALTER TABLE events DROP CONSTRAINT tame")
        self._refuses = bool(ids)
        if ids:
            some = ", ".join(f"toUInt128('{_number(number)}')" for number in ids)
            self.client.command(f"ALTER TABLE events ADD CONSTRAINT tame CHECK id NOT IN ({some})")

    def state(self) -> State:
        parts = [
            f"SELECT '{table}', project_id, toString(id), {days}, count() FROM {table} GROUP BY ALL"
            for table, days in (("events", "retention_days"), ("payloads", "payload_days"))
        ]
        parts += [
            f"SELECT '{rollup.table}', project_id, toString(toDate({rollup.time})), retention_days, sum(n) AS n "
            f"FROM {rollup.table} GROUP BY ALL HAVING n != 0"
            for rollup in ROLLUPS
        ]
        state: State = {name: {} for name in FED}
        for table, project, what, days, n in self.client.query(" UNION ALL ".join(parts)).result_rows:
            key = int(what).to_bytes(16, "little") if table in {"events", "payloads"} else str(what)
            state[table][project, key, days] = n
        return state

    def latest(self, table: str) -> list[list[str]]:
        columns = ", ".join(_plain(name) for name in LATEST[table].names)
        rows = self.client.query(f"SELECT {columns} FROM {table} FINAL").result_rows
        return sorted([str(value) for value in row] for row in rows)


def _plain(column: str) -> str:
    """A column in SQL; a time as seconds."""
    times = {"first_seen", "last_seen", "at", "minute", "created", "escalated"}
    return f"toInt64(toUnixTimestamp({column}))" if column in times else column


class ModelStore:
    """The model of a server, for one process of its world."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.marks: dict[str, ServerMark] = {}
        self.client: Any = clickhouse_client.Client(server, lambda: 0.001, 120.0)

    def lose(self, table: str, project: int, ids: Iterable[bytes]) -> None:
        lost, kept = set(ids), self._server.tables[table]
        for key in [key for key in kept.counts if key[0] == project]:
            del kept.counts[key]
        for part, events in kept.parts.items():
            kept.parts[part] = [e for e in events if e.project != project or e.id not in lost]

    def refuse(self, ids: Sequence[bytes]) -> None:
        self._server.refused = set(ids)

    def state(self) -> State:
        state: State = {}
        for name, table in self._server.tables.items():
            if name in ROLLUP_NAMES:
                counts: Counter[Any] = Counter()
                for (project, day, _, days), n in table.counts.items():
                    counts[project, str(day), days] += n
                state[name] = {key: n for key, n in counts.items() if n}
            else:
                state[name] = dict(Counter((e.project, e.id, e.retention) for e in table.rows))
        return state

    def latest(self, table: str) -> list[list[str]]:
        rows = [row for _, row in self._server.latest[table].values()]
        return sorted([_text(row[name]) for name in LATEST[table].names] for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return str(int(value.replace(tzinfo=UTC).timestamp()))
    return str(int.from_bytes(value, "little") if isinstance(value, bytes) else value)


def on_model(seed: int, window: int, history: Callable[[Store], Any]) -> Any:
    """The result of a history on the model."""
    world = World(seed)
    server = Server(world, window)
    return in_fiber(world, lambda: history(ModelStore(server)))


def days_of(rows: pa.Table) -> set[tuple[int, date]]:
    """The projects and days of a block."""
    moments = [moment.date() for moment in rows["ts"].to_pylist()]
    return set(zip(rows["project_id"].to_pylist(), moments, strict=True))
