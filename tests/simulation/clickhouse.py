"""A model of ClickHouse as the product uses it.

It models blocks that arrive table by table, tokens and their window, and the statements about them. A
statement takes time and is done in steps, between which the server may be killed: its remaining steps are
then missing, and a token may be remembered although its part is lost. Rollups are kept by project, day and
fingerprint alone.
"""

import math
import pickle
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
from clickhouse_connect.driver.exceptions import Error

from storage import client
from storage.exactly_once import (
    consistent_read,
    filling,
    insert_guard,
    insert_pauses,
    missing_rows,
    repair_rollups,
    server_state,
)
from storage.maintain.reconcile import duplicates as duplicates_found
from storage.read.events import stored_ids
from storage.tables import record_rows
from storage.tables.migrations.migrate import migrations, statements
from storage.write import block_inserter
from tests.simulation import comparison, duplicates, packs
from tests.simulation.clickhouse_tables import (
    FED,
    ROLLUP_TABLES,
    WINDOW,
    Block,
    CountKey,
    Event,
    Key,
    Table,
    count_key,
    events_of,
    partition_of,
)
from tests.simulation.clickhouse_work import Work, made_of
from tests.simulation.erasing import Erasing
from tests.simulation.rebuilding import Rebuilding
from tests.simulation.world import EPOCH, START, Process, World

_WINDOW: Final = re.compile(r"non_replicated_deduplication_window = (\d+)")
_CREATED: Final = {
    statement.split(maxsplit=6)[5]: statement
    for migration in migrations()
    for statement in statements(migration.sql)
    if statement.startswith("CREATE TABLE")
}
LATEST_WINDOWS: Final = {
    name: int(found[1]) if (found := _WINDOW.search(_CREATED[name])) else 0
    for name in ("issues", "issue_activity", "changes", "outcomes", "projects")
}
"""How many tokens the tables remember that collapse equal keys."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_REFUSED: Final = 117
_UNSTEADY_SECONDS: Final = 15.0
_DEATH_SECONDS: Final = 3.0
"""How long a server that is to die in an insert waits for one."""
_DEATH_SHARE: Final = 0.2
"""The chance of each step of an insert."""


class Answer:
    """A response to a client."""

    def __init__(self, rows: Sequence[Sequence[Any]] = (), written: int = 0) -> None:
        self.result_rows = list(rows)
        self.written_rows = written


class Server:
    """The server; `name` is its name in stories."""

    def __init__(self, world: World, window: int = WINDOW, name: str = "ClickHouse") -> None:
        self.world = world
        self.name = name
        self.tables = {name: Table(window) for name in FED}
        self.latest: dict[str, dict[Any, tuple[int, Any]]] = {name: {} for name in LATEST_WINDOWS}
        """Rows of tables that collapse equal keys, with the version."""
        self.latest_tokens = {name: Table(window) for name, window in LATEST_WINDOWS.items()}
        self.pauses: dict[str, float] = {}
        self.pause_changes = 0
        self.announced_until = 0.0
        self.running: dict[int, tuple[str, str]] = {}
        """Target and token of each insert in progress."""
        self.sessions: dict[str, tuple[float, float]] = {}
        """When each ends, and its seconds from statement to statement."""
        self.is_up = True
        self.life = 0
        self.frozen_until = 0.0
        self.lag = 0.0
        self.erasing = Erasing(self)
        self.issue_rows: dict[Any, list[tuple[int, Any]]] = {}
        """All rows of `issues`, also those that newer ones supersede."""
        self.lost: set[Key] = set()
        """Events of lost parts."""
        self.refused: set[bytes] = set()
        """Ids whose rows `events` doesn't take."""
        self.drag = 0.0
        """Seconds of the next insert of a block."""
        self.mishap = ""
        """The fault for the sender of the next one (`tests.simulation.aims`)."""
        self.looks: dict[Process, tuple[set[str], set[str]]] = {}
        """The pauses that a process saw first and last since its last insert of a block."""
        self.blind: list[str] = []
        """Processes that inserted a block without waiting for the pauses."""
        self._unsteady_until = 0.0
        self._death: float | None = None
        """For how long a server will be down that dies in one of the next inserts."""
        self._number = 0
        self._statements: dict[str, Callable[..., Work]] = {
            insert_pauses.IN_FORCE: self._pauses_in_force,
            insert_pauses.SET: self._set_pause,
            insert_pauses.ANNOUNCE: self._announce,
            server_state.STATE: self._state,
            block_inserter.ANY: self._any,
            consistent_read.RUNNING: self._running,
            insert_guard.RUNNING_TRIES: self._running_tries,
            consistent_read.BLOCKS: self._last_blocks,
            filling.STORED_EVENTS: self._stored("events"),
            stored_ids.STORED: self._stored("events"),
            filling.STORED_PAYLOADS: self._stored("payloads"),
            missing_rows.FORGET: partial(duplicates.forget_payload, self),
            client.LIFE: self._life,
            "SELECT 1": self._one,
            **self.erasing.statements,
            **Rebuilding(self).statements,
        }
        self._patterns: list[tuple[re.Pattern[str], Callable[..., Work]]] = [
            *self.erasing.patterns,
            *packs.patterns(self),
            (made_of(duplicates_found.DELETE), partial(duplicates.delete, self)),
        ]
        for sql, rows in comparison.statements(self).items():
            self._statements[sql] = self._counted(rows)
        self._statements.update(duplicates.statements(self))
        self._statements.update(packs.statements(self))

    def add(self, other: "Server") -> None:
        """Show another server's events and the rows derived from them, together with this one's."""
        for name, table in self.tables.items():
            there = other.tables[name]
            table.parts |= {f"{other.name} {part}": events for part, events in there.parts.items()}
            table.counts.update(there.counts)
        self.erasing.add(other.erasing)
        self.lost |= other.lost
        self.blind += other.blind

    def share(self, other: "Server") -> None:
        """Have the tables of another that are the same on each server."""
        self.latest, self.issue_rows = other.latest, other.issue_rows

    def crash(self, seconds: float) -> None:
        """`kill -9`, now or in an insert, and a start some seconds later. Running statements stop between two steps."""
        if self.world.random.random() < 0.5:
            self._crash(seconds)
        else:
            self.die_in_insert(seconds)

    def die_in_insert(self, seconds: float) -> None:
        """`kill -9` in an insert, or after some seconds without one."""
        self._death = seconds
        self.world.after(_DEATH_SECONDS, self._die)

    def _die(self) -> None:
        if self._death is not None and self.is_up:
            self._crash(self._death)
        self._death = None

    def _step(self, seconds: float) -> float:
        """The seconds of an insert's step, in which the server may die."""
        if self._death is not None and self.world.random.random() < _DEATH_SHARE:
            self.world.after(seconds * self.world.random.random(), self._die)
        return seconds

    def _crash(self, seconds: float) -> None:
        self.is_up = False
        self.life += 1
        self.running.clear()
        self.sessions.clear()
        self.world.note(f"{self.name} is down for {seconds:.1f} s")
        self.world.after(seconds, self._start)

    def _start(self) -> None:
        self.is_up = True
        self._unsteady_until = self.world.now + _UNSTEADY_SECONDS
        self.world.note(f"{self.name} is up")

    def is_unsteady(self) -> bool:
        """Whether connections to it are lost: some time after a start."""
        return self.life > 0 and self.world.now < self._unsteady_until

    def today_ms(self) -> int:
        """The time by the server's clock (Unix ms)."""
        return int((EPOCH + self.world.now - START) * 1000)

    def freeze(self, seconds: float) -> None:
        """Answer nothing for some seconds."""
        self.frozen_until = self.world.now + seconds
        self.world.note(f"{self.name} is frozen for {seconds:.1f} s")

    def slow_down(self, lag: float, seconds: float) -> None:
        """Take longer for each step of a statement, for some seconds."""
        self.lag = lag
        self.world.note(f"{self.name} is slow for {seconds:.1f} s")
        self.world.after(seconds, partial(setattr, self, "lag", 0.0))

    def lose_part(self, random: Random) -> bool:
        """A part of `events` or `payloads` is broken on the disk; whether there was one."""
        name = random.choice(("events", "payloads"))
        parts = self.tables[name].parts
        if not parts:
            return False
        lost = parts.pop(random.choice(sorted(parts)))
        if name == "events":
            self.lost.update((event.project, event.id) for event in lost)
        self.world.note(f"{name} loses a part of {len(lost)} rows")
        return True

    def insert_again(self, random: Random) -> bool:
        """A part of `events` is there twice, with its payloads and counts; whether there was one."""
        parts = self.tables["events"].parts
        if not parts:
            return False
        events = parts[random.choice(sorted(parts))]
        keys = {(event.project, event.id) for event in events}
        self.tables["events"].add(events)
        self.tables["payloads"].add(
            [row for row in self.tables["payloads"].rows if (row.project, row.id) in keys]
        )
        for rollup in ROLLUP_TABLES:
            self.tables[rollup].count(Counter(map(count_key, events)))
        self.world.note(f"{len(events)} events are inserted again")
        return True

    def admits(self, settings: Mapping[str, Any]) -> bool:
        """Whether the session of a statement goes on, if it must; one that need not exist begins here."""
        number = settings.get("session_id")
        if number is not None and "session_check" not in settings:
            self.sessions[number] = (math.inf, settings["session_timeout"])
        return number is None or self.sessions.get(number, (0.0, 0.0))[0] > self.world.now

    def renew(self, settings: Mapping[str, Any]) -> None:
        """A statement has ended: its session lasts for some time again."""
        number = settings.get("session_id", "")
        if number in self.sessions:
            _, seconds = self.sessions[number]
            # The server looks once a second for those to end.
            self.sessions[number] = (self.world.now + seconds + self.world.random.uniform(1, 2), seconds)

    # Statements. Each is a generator, so that it can take time.

    def query(self, sql: str, parameters: Mapping[str, Any], external: Any) -> Work:
        """A statement that reads."""
        if sql in self._statements:
            return self._statements[sql](parameters, external)
        for pattern, statement in self._patterns:
            if pattern.fullmatch(sql):
                return statement(sql, parameters, external)
        if "r_n" in sql and "FULL OUTER JOIN" in sql:
            return self._difference(sql, external)
        raise NotImplementedError(f"the model does not know this statement: {sql}")

    def look(self, process: Process, pauses: Iterable[Sequence[str]]) -> None:
        """A process learns which pauses are in force."""
        now = {name for (name,) in pauses}
        first, _ = self.looks.get(process, (now, now))
        self.looks[process] = first, now

    def heed(self, process: Process) -> None:
        """A process sends a block: it has looked for pauses, and waited for the end of those that it saw."""
        first, last = self.looks.pop(process, ({"never looked"}, {"never looked"}))
        if first & last:
            self.blind.append(process.name)

    def _pauses_in_force(self, *_: Any) -> Work:
        yield 0.0
        return [[name] for name, until in self.pauses.items() if until > self.world.now]

    def _set_pause(self, parameters: Mapping[str, Any], _: Any) -> Work:
        yield 0.0
        self.pause_changes += 1
        self.pauses[str(parameters["id"])] = self.world.now + parameters["milliseconds"] / 1000
        return []

    def _announce(self, parameters: Mapping[str, Any], _: Any) -> Work:
        yield 0.0
        self.announced_until = max(self.announced_until, self.world.now + parameters["milliseconds"] / 1000)
        return []

    def _state(self, *_: Any) -> Work:
        yield 0.0
        in_force = sum(until > self.world.now for until in self.pauses.values())
        engine = "MergeTree SETTINGS non_replicated_deduplication_window = "
        return [
            *(
                [name, f"{engine}{table.window}", table.last, in_force, [], 0]
                for name, table in self.tables.items()
            ),
            ["insert_pauses", "ReplacingMergeTree", self.pause_changes, in_force, [], 0],
        ]

    def _any(self, *_: Any) -> Work:
        yield 0.0
        fed = any(table.parts or table.counts for table in self.tables.values())
        return [[1]] if fed or self.erasing.never_again else []

    def _running(self, parameters: Mapping[str, Any], _: Any) -> Work:
        yield 0.0
        running = sum(target in parameters["targets"] for target, _ in self.running.values())
        return [[running + (self.announced_until > self.world.now)]]

    def _running_tries(self, parameters: Mapping[str, Any], _: Any) -> Work:
        yield 0.0
        return [[sum(token == parameters["token"] for _, token in self.running.values())]]

    def _last_blocks(self, parameters: Mapping[str, Any], _: Any) -> Work:
        yield 0.0
        return [[hash(tuple(self.tables[name].last for name in parameters["tables"] if name in self.tables))]]

    def _one(self, *_: Any) -> Work:
        yield 0.0
        return [[1]]

    def _life(self, *_: Any) -> Work:
        yield 0.0
        return [[f"00000000-0000-0000-0000-{self.life + 1:012d}"]]

    def wanted(self, external: Any) -> set[Key]:
        """The keys of an external table."""
        [file] = external.files
        layout = stored_ids.WANTED if file.structure == stored_ids.STRUCTURE else filling.WANTED
        wanted = np.frombuffer(file.data, layout)
        return {
            (int(project), bytes(number))
            for project, number in zip(wanted["project_id"], wanted["id"], strict=True)
        }

    def _stored(self, table: str) -> Callable[..., Work]:
        def stored(_: Any, external: Any) -> Work:
            yield 0.001
            wanted = self.wanted(external)
            return [
                [row.project, int.from_bytes(row.id, "little"), row.retention]
                for row in self.tables[table].rows
                if (row.project, row.id) in wanted
            ]

        return stored

    def _counted(self, rows: Callable[[], list[Sequence[Any]]]) -> Callable[..., Work]:
        def counted(*_: Any) -> Work:
            yield 0.002
            return rows()

        return counted

    # Comparisons of rollups.

    def _difference(self, sql: str, external: Any) -> Work:
        yield 0.002
        table = next(name for name in sorted(ROLLUP_TABLES, key=len, reverse=True) if f"FROM {name} " in sql)
        if "WHERE erasure = " in sql:
            wanted = self.erasing.counted(table, sql)
        else:
            pairs = _days_wanted(external)
            wanted = lambda key: (key[0], key[1]) in pairs  # noqa: E731
        events = Counter(map(count_key, self.tables["events"].rows))
        counts = self.tables[table].counts
        if "sum(r_n)" in sql:
            return comparison.by_day(sql, events, counts)
        rows = [
            (*key, events[key] - counts[key])
            for key in sorted(events.keys() | counts.keys())
            if events[key] != counts[key] and wanted(key)
        ]
        if sql.lstrip().startswith("SELECT sum(cityHash64("):
            return [[hash(tuple(rows)) & ((1 << 63) - 1)]]
        return rows

    # Inserts.

    def insert_events(self, rows: pa.Table, token: str) -> Work:
        """A block into `ingest`: table by table, in no fixed order."""
        names = list(FED)
        self.world.random.shuffle(names)
        block = Block(rows)
        events, payloads = events_of(block, "retention_days"), events_of(block, "payload_days")
        yield from self._insert(
            "ingest", {name: payloads if name == "payloads" else events for name in names}, token
        )
        return rows.num_rows

    def insert_into(self, table: str, rows: pa.Table, token: str) -> Work:
        """Rows into `events` or `payloads` alone."""
        yield from self._insert(
            table,
            {table: events_of(Block(rows), "payload_days" if table == "payloads" else "retention_days")},
            token,
        )
        return rows.num_rows

    def _insert(self, target: str, of_table: Mapping[str, Sequence[Event]], token: str) -> Work:
        self._number += 1
        number = self._number
        self.running[number] = target, token
        random = self.world.random
        drag, self.drag = self.drag, 0.0
        try:
            yield 0.002 + drag
            refuses = any(event.id in self.refused for event in of_table.get("events", ()))
            if refuses:
                # Some of the other tables have the block, and its token, by then.
                others = [name for name in of_table if name != "events" and random.random() < 0.5]
                of_table = {name: of_table[name] for name in others}
            parts: dict[tuple[str, Hashable], list[Event]] = {}
            for name, events in of_table.items():
                for event in events:
                    parts.setdefault((name, partition_of(event.day, event.retention)), []).append(event)
            for (name, partition), part in parts.items():
                table = self.tables[name]
                try:
                    yield self._step(0.0005 if random.random() < 0.9 else random.uniform(0.0, 2.0))
                except GeneratorExit:
                    # The token is written before the part is in its place: a killed server may know it
                    # without the rows.
                    if random.random() < 0.5:
                        table.remember(partition, token)
                    raise
                if not table.knows(partition, token):
                    table.remember(partition, token)
                    if name in ROLLUP_TABLES:
                        table.count(Counter(map(count_key, part)))
                    else:
                        table.add(part)
            if refuses:
                raise Error("some value is not accepted", code=_REFUSED)
        finally:
            self.running.pop(number, None)

    def insert_counts(self, table: str, data: bytes, token: str) -> Work:
        """Differences into a rollup."""
        self._number += 1
        number = self._number
        self.running[number] = table, token
        try:
            yield self._step(0.0015)
            rollup, written = self.tables[table], 0
            parts: dict[Hashable, list[tuple[CountKey, int]]] = {}
            for *key, n in pickle.loads(data):
                parts.setdefault(partition_of(key[1], key[3]), []).append((tuple(key), n))
            for partition, rows in parts.items():
                if not rollup.knows(partition, token):
                    rollup.remember(partition, token)
                    rollup.count(Counter(dict(rows)))
                    written += len(rows)
            return written
        finally:
            self.running.pop(number, None)

    def insert_latest(self, table: str, rows: pa.Table, token: str) -> Work:
        """Rows into a table that collapses equal keys."""
        tokens = self.latest_tokens[table]
        values = rows.to_struct_array().to_pylist()
        # Without a token, the rows are one.
        token = token or repr(values)
        try:
            yield self._step(0.002)
        except GeneratorExit:
            if tokens.window and self.world.random.random() < 0.5:
                tokens.remember(None, token)
            raise
        if not tokens.knows(None, token):
            tokens.remember(None, token)
            self.collapse(table, values)
        return rows.num_rows

    def insert_rows(self, table: str, rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> Work:
        """Rows of Python values."""
        if table == "erasures":
            return self.erasing.record(rows, columns)
        raise NotImplementedError(f"the model does not know rows of {table}")

    def collapse(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Of rows with equal keys, the newest counts; of equal versions the later."""
        latest = self.latest[table]
        for row in rows:
            key, version = _LATEST[table](row)
            if table == "issues":
                self.issue_rows.setdefault(key, []).append((version, row))
            if key not in latest or latest[key][0] <= version:
                latest[key] = version, row

    def remove_issues(self, meets: Callable[[Any], bool]) -> None:
        """Delete rows of `issues`, also superseded ones."""
        for key, versions in self.issue_rows.items():
            versions[:] = [(version, row) for version, row in versions if not meets(row)]
            # The later of equal versions counts.
            newest = max(reversed(versions), key=lambda row: row[0], default=None)
            if newest is not None:
                self.latest["issues"][key] = newest
            else:
                self.latest["issues"].pop(key, None)


def _days_wanted(external: Any) -> set[tuple[int, date]]:
    """The projects and days of an external table, if there is one."""
    files = external.files if external is not None else ()
    rows = [row for file in files for row in np.frombuffer(file.data, repair_rollups.PAIRS)]
    return {(int(project), date.fromordinal(_EPOCH_DAY + int(day))) for project, day in rows}


_LATEST: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[Any, int]]]] = {
    "issues": lambda row: ((row["project_id"], row["issue_id"]), row["version"]),
    "issue_activity": lambda row: ((row["project_id"], row["issue_id"], row["at"], row["id"]), 0),
    "changes": lambda row: ((row["project_id"], row["id"]), 0),
    "outcomes": lambda row: (
        tuple(row[name] for name in record_rows.OUTCOMES.names if name not in {"count", "example"}),
        0,
    ),
    "projects": lambda row: (row["project_id"], row["version"]),
}
