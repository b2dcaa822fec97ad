"""The statements of `svc erase` on the model of ClickHouse.

They are lists of events, deletions in the background, and the ledger. An event's tags are taken for one of
its project, as the rollup of tags is kept without them.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from schemas.ids import issue_id
from schemas.times import to_ms
from storage.maintain.erase import erase_user, erased_issues, ledger, purge, sizes
from storage.tables import erased
from storage.tables.rollups import ROLLUPS
from tests.simulation import packs
from tests.simulation.clickhouse_tables import (
    ROLLUP_TABLES,
    CountKey,
    Event,
    Key,
    Mutation,
    Table,
    partition_of,
)
from tests.simulation.clickhouse_work import made_of

if TYPE_CHECKING:
    from tests.simulation.clickhouse import Server
    from tests.simulation.clickhouse_work import Work

Meets = Callable[[Any], bool]
_LISTED: Final = re.compile(
    r"erasing(?:_tags)? WHERE erasure = '([-0-9a-f]+)'(?: AND toMonday\(\w+\) = '(\d{4}-\d\d-\d\d)')?"
)
_OF_ISSUES: Final = {
    rollup.table for rollup in ROLLUPS if any(name == "fingerprint" for name, _ in rollup.keys)
}
_EVENTS: Final = re.compile(r"project_id = (\d+) AND last_event IN \(('\d+'(?:, '\d+')*)\)")
_WEEK: Final = timedelta(days=7)
_MUTATION_SECONDS: Final = 0.3
_AGAIN_SECONDS: Final = 0.5
_ONE: Final = "all"
"""The partition of a table that has but one."""


class Erasing:
    """The tables of erasures."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self.ledger: dict[tuple[int, str], tuple[int, Mapping[str, Any]]] = {}
        self.listed: dict[str, list[Event]] = {}
        self.counts: dict[tuple[int, date, int, str], int] = {}
        self.never_again: set[Key] = set()
        self.statements: Mapping[str, Callable[..., Work]] = {
            ledger.READ: self._read,
            sizes.BYTES: self._nothing,
            erase_user.LISTS: self._unused_lists,
            erase_user.NEVER_AGAIN: self._forbid,
            erase_user.COUNT: self._count,
            erase_user.WEEKS: self._weeks,
            erase_user.TAG_KEYS: self._tag_keys,
            purge.UNDONE: self._undone,
            erased.PROJECTS: self._projects,
            erased.ERASED_AMONG: self._among,
            "SELECT uniqExact(id) FROM erasing WHERE erasure = {erasure:UUID}": self._listed_ids,
        }
        self.patterns: Sequence[tuple[re.Pattern[str], Callable[..., Work]]] = [
            (made_of(template), statement)
            for template, statement in (
                (sizes.ROWS, self._size),
                (erased_issues.ISSUES, self._described),
                (erased_issues.DESCRIBING, self._describing),
                (erased_issues.REDESCRIBE, self._redescribe),
                (erase_user.LIST, self._list),
                (erase_user.LIST_TAGS, self._nothing_of),
                (purge.PARTITIONS, self._partitions),
                (purge.DELETE, self._delete),
                (erase_user.DROP_LIST, self._drop),
                (erased_issues.NEWEST, self._newest),
            )
        ]

    def add(self, other: "Erasing") -> None:
        """Add the rows of another server."""
        self.ledger |= other.ledger
        self.listed |= other.listed
        self.counts |= other.counts
        self.never_again |= other.never_again

    def totals(self) -> Counter[tuple[int, date, int]]:
        """As `storage.tables.erased.ERASED`: how many are erased of each project, day of receipt and fingerprint."""
        found: Counter[tuple[int, date, int]] = Counter()
        done = {key for key, (_, row) in self.ledger.items() if row["stage"] == "done"}
        for (project, day, fingerprint, erasure), n in self.counts.items():
            if (project, erasure) in done:
                found[project, day, fingerprint] += n
        stored = {(event.project, event.id) for event in self._server.tables["events"].rows}
        for (_, erasure), (_, row) in self.ledger.items():
            if row["stage"] == "deleting":
                removed = {(event.project, event.id): event for event in self.listed.get(erasure, ())}
                for key, event in removed.items():
                    if key not in stored:
                        found[event.project, event.received, event.fingerprint] += 1
        return found

    def record(self, rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> "Work":
        """Insert into `erasures`."""
        yield 0.001
        for values in rows:
            row = dict(zip(columns, values, strict=True))
            key = row["project_id"], str(row["id"])
            if key not in self.ledger or self.ledger[key][0] <= row["version"]:
                self.ledger[key] = row["version"], row

    # The meaning of a condition.

    def _events(self, sql: str, external: Any) -> list[Event]:
        """The events of a scope: those of the lists, or of a user."""
        if found := _LISTED.search(sql):
            listed = self.listed.get(found[1], [])
            if found[2] is None:
                return listed
            week = date.fromisoformat(found[2])
            return [event for event in listed if week <= event.day < week + _WEEK]
        wanted = json.loads(external.files[0].data)
        return [
            event
            for event in self._server.tables["events"].rows
            if event.column("user_hash") == int(wanted["hash"]) and event.column("user_id") == wanted["id"]
        ]

    def condition(self, table: str, sql: str, external: Any) -> Meets:
        """Whether a row of the table meets the condition, as of now."""
        if of_packs := packs.of_packs(sql):
            return of_packs
        if found := _EVENTS.search(sql):
            project, texts = int(found[1]), set(found[2].replace("'", "").split(", "))
            return lambda row: row["project_id"] == project and str(_number(row["last_event"])) in texts
        events = self._events(sql, external)
        if table in ROLLUP_TABLES:
            keys = {_listed_key(table, event.project, event.day, event.fingerprint) for event in events}
            return lambda key: _listed_key(table, *key[:3]) in keys
        numbers = {(event.project, event.id) for event in events}
        if table == "issues":
            return lambda row: (row["project_id"], row["last_event"]) in numbers
        return lambda event: (event.project, event.id) in numbers

    def counted(self, table: str, sql: str) -> Callable[[CountKey], bool]:
        """Whether a difference in a rollup is about this key."""
        return self.condition(table, sql, None)

    def _rows(self, table: str, meets: Meets) -> Counter[str]:
        """The rows that meet a condition, by partition."""
        if table == "issues":
            rows = sum(meets(row) for versions in self._server.issue_rows.values() for _, row in versions)
            return Counter({_ONE: rows} if rows else {})
        there = self._server.tables[table]
        if table in ROLLUP_TABLES:
            return Counter(partition_of(key[1], key[3]) for key in there.counts if meets(key))
        return Counter(partition_of(event.day, event.retention) for event in there.rows if meets(event))

    # Statements about lists.

    def _nothing(self, *_: Any) -> "Work":
        yield 0.0
        return []

    def _nothing_of(self, *_: Any) -> "Work":
        yield 0.001
        return []

    def _read(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.0
        rows = [row for (project, _), (_, row) in self.ledger.items() if project == parameters["project"]]
        return [[row[name] for name in ledger.COLUMNS[:-1]] for row in rows]

    def _unused_lists(self, *_: Any) -> "Work":
        yield 0.0
        done = {erasure for (_, erasure), (_, row) in self.ledger.items() if row["stage"] == "done"}
        return [[erasure] for erasure in self.listed if erasure in done]

    def _list(self, sql: str, _: Any, external: Any) -> "Work":
        yield 0.001
        [erasure] = re.findall(r"SELECT '([-0-9a-f]+)'", sql)
        events = list(self._events(sql, external))
        yield 0.001
        self.listed.setdefault(erasure, []).extend(events)
        return []

    def _drop(self, sql: str, *_: Any) -> "Work":
        yield 0.001
        [erasure] = re.findall(r"'([-0-9a-f]+)'", sql)
        if sql.split()[2] == "erasing":
            self.listed.pop(erasure, None)
        return []

    def _of(self, parameters: Mapping[str, Any]) -> list[Event]:
        return self.listed.get(str(parameters["erasure"]), [])

    def _listed_ids(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.0
        return [[len({event.id for event in self._of(parameters)})]]

    def _forbid(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.001
        self.never_again.update((event.project, event.id) for event in self._of(parameters))
        return []

    def _count(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.001
        events = {(event.project, event.id): event for event in self._of(parameters)}
        erasure = str(parameters["erasure"])
        for (project, day, fingerprint), n in Counter(
            (event.project, event.received, event.fingerprint) for event in events.values()
        ).items():
            self.counts[project, day, fingerprint, erasure] = n
        return []

    def _weeks(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.0
        days = sorted({event.day for event in self._of(parameters)})
        weeks: dict[date, list[date]] = {}
        for day in days:
            weeks.setdefault(day - timedelta(days=day.weekday()), []).append(day)
        return [[week, days] for week, days in weeks.items()]

    def _tag_keys(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.0
        first, last = parameters["week"], parameters["next"]
        return [[len({event.day for event in self._of(parameters) if first <= event.day < last})]]

    def _projects(self, *_: Any) -> "Work":
        yield 0.0
        return [[project] for (project, _), (_, row) in self.ledger.items() if row["kind"] == "project"]

    def _among(self, _: Any, external: Any) -> "Work":
        yield 0.0
        projects = {project for (project, _), (_, row) in self.ledger.items() if row["kind"] == "project"}
        return [
            [project, int.from_bytes(number, "little"), 0]
            for project, number in self._server.wanted(external)
            if (project, number) in self.never_again or project in projects
        ]

    # Statements about the tables of events.

    def _size(self, sql: str, _: Any, external: Any) -> "Work":
        yield 0.001
        table = sql.split()[3]
        return [[self._rows(table, self.condition(table, sql, external)).total()]]

    def _partitions(self, sql: str, *_: Any) -> "Work":
        yield 0.001
        table = sql.split()[4]
        return [[*row] for row in sorted(self._rows(table, self.condition(table, sql, None)).items())]

    def _delete(self, sql: str, *_: Any) -> "Work":
        yield 0.001
        name, partition = sql.split()[2], sql.split("'")[1]
        if name == "issues":
            self._server.remove_issues(self.condition(name, sql, None))
            return []
        table, server = self._server.tables[name], self._server
        # The list is read when the parts are rewritten.
        mutation = Mutation(table, partition, sql, lambda: self.condition(name, sql, None))
        table.mutations.append(mutation)
        server.world.after(server.world.random.uniform(0.0, _MUTATION_SECONDS), partial(self._mutate, table))
        return []

    def _mutate(self, table: Table) -> None:
        server = self._server
        if not server.is_up or server.world.now < server.frozen_until:
            server.world.after(_AGAIN_SECONDS, partial(self._mutate, table))
        else:
            table.mutate()

    def _undone(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.0
        mutations = [m for table in self._server.tables.values() for m in table.mutations]
        return [[sum(parameters["mark"] in m.command for m in mutations), ""]]

    # Statements about issues.

    def _described(self, sql: str, _: Any, external: Any) -> "Work":
        yield 0.001
        meets = self.condition("issues", sql, external)
        return [[row["issue_id"]] for row in self._shown() if meets(row)]

    def _describing(self, sql: str, *_: Any) -> "Work":
        yield 0.001
        meets = self.condition("issues", sql, None)
        rows = [row for versions in self._server.issue_rows.values() for _, row in versions if meets(row)]
        return [[number] for number in sorted({_number(row["last_event"]) for row in rows})]

    def _shown(self) -> list[Mapping[str, Any]]:
        return [row for _, row in self._server.latest["issues"].values() if not row["deleted"]]

    def _redescribe(self, sql: str, *_: Any) -> "Work":
        yield 0.001
        meets = self.condition("issues", sql, None)
        for row in [row for row in self._shown() if meets(row)]:
            newest = self._newest_of(row["project_id"], set(row["fingerprints"]))
            changed = {
                **row,
                "last_event": newest.id if newest else bytes(16),
                "message": newest.column("message")[: erased_issues.MAX_TEXT] if newest else "",
            }
            self._server.collapse("issues", [changed])
        return []

    def _newest_of(self, project: int, fingerprints: set[int]) -> Event | None:
        events = [
            event
            for event in self._server.tables["events"].rows
            if event.project == project and event.fingerprint in fingerprints
        ]
        return max(events, key=_age, default=None)

    def _newest(self, sql: str, *_: Any) -> "Work":
        yield 0.001
        newest: dict[tuple[int, int], Event] = {}
        for event in sorted(self._events(sql, None), key=_age):
            newest[event.project, event.fingerprint] = event
        rows = []
        for (project, fingerprint), event in newest.items():
            left = self._newest_of(project, {fingerprint})
            if left is None or _age(event) > _age(left):
                text = left.column("message")[: erased_issues.MAX_TEXT] if left else ""
                ms = to_ms(left.ts.replace(tzinfo=UTC)) if left else 0
                rows.append([fingerprint, event.number, left.number if left else 0, text, ms])
        return rows


def issue_of(event: Event) -> int:
    """The issue that an event's fingerprint opened."""
    return issue_id(event.project, event.fingerprint)


def _number(event: bytes) -> int:
    return int.from_bytes(event, "little")


def _age(event: Event) -> tuple[Any, int]:
    return event.ts, event.number


def _listed_key(table: str, project: int, day: date, fingerprint: int) -> tuple[Any, ...]:
    """The columns of a rollup's key that the lists have."""
    return (project, day, fingerprint) if table in _OF_ISSUES else (project, day)
