"""The statements of `svc reconcile`, on the model of ClickHouse: they count the rows of its tables."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from storage.maintain.audit import retention_history
from storage.maintain.reconcile import duplicates, reconcile
from storage.tables.rollups import ROLLUPS

if TYPE_CHECKING:
    from tests.simulation.clickhouse import Server

Rows = list[Sequence[Any]]
_WEEK: Final = re.compile(r">= '(\d{4}-\d\d-\d\d)'")
_SUMS: Final = "SELECT project_id, sum(n) FROM {} GROUP BY project_id"


def statements(server: "Server") -> Mapping[str, Callable[[], Rows]]:
    """The result of each statement, except the comparison of a rollup by weeks (`by_day`)."""
    events, payloads = server.tables["events"], server.tables["payloads"]
    return {
        reconcile.OUTCOMES: lambda: _outcomes(server),
        reconcile.STORED: lambda: _grouped((row.project, row.received) for row in events.rows),
        reconcile.ERASED_BY_DAY: lambda: _erased_by_day(server),
        reconcile.EVENTS: lambda: _grouped((row.project, row.day) for row in events.rows),
        reconcile.PAYLOADS: lambda: _grouped((row.project, row.day) for row in payloads.rows),
        reconcile.WEEKS: lambda: _weeks(server),
        reconcile.ISSUES: lambda: _issues(server),
        reconcile.UNGROUPED: lambda: _ungrouped(server),
        retention_history.PRESENT: lambda: [
            [row["project_id"], row["name"], row["retention_days"], row["payload_days"]]
            for _, row in server.latest["projects"].values()
        ],
        retention_history.PAST: list,
        **{
            reconcile.COUNT_TWICE.format(table=name): partial(_twice, server, name)
            for name in duplicates.TABLES
        },
        **{sql: partial(_copied, server, table) for table, sql in reconcile.COPIES.items()},
        **{_SUMS.format(rollup.table): partial(_sums, server, rollup.table) for rollup in ROLLUPS},
    }


def by_day(sql: str, events: Mapping[Any, int], counts: Mapping[Any, int]) -> Rows:
    """Project, day, both sums and the number of keys that differ, in the week of the statement."""
    monday = date.fromisoformat(_WEEK.findall(sql)[0])
    found: dict[tuple[int, date], list[int]] = {}
    for key in events.keys() | counts.keys():
        there, here = events.get(key, 0), counts.get(key, 0)
        if there != here and monday <= key[1] < monday + timedelta(days=7):
            sums = found.setdefault((key[0], key[1]), [0, 0, 0])
            sums[0], sums[1], sums[2] = sums[0] + there, sums[1] + here, sums[2] + 1
    return [[*day, *sums] for day, sums in sorted(found.items())]


def _erased_by_day(server: "Server") -> Rows:
    found = Counter[Any]()
    for (project, day, _), n in server.erasing.totals().items():
        found[project, day] += n
    return [[*key, n] for key, n in sorted(found.items())]


def _grouped(keys: Any) -> Rows:
    return [[*key, n] for key, n in sorted(Counter(keys).items())]


def _outcomes(server: "Server") -> Rows:
    found = Counter[Any]()
    for _, row in server.latest["outcomes"].values():
        if row["outcome"] in {"accepted", "duplicate", "deadLettered"}:
            found[row["project_id"], row["minute"].date(), row["outcome"]] += row["count"]
    return [[*key, n] for key, n in sorted(found.items())]


def _weeks(server: "Server") -> Rows:
    days = {row.day for row in server.tables["events"].rows}
    days |= {key[1] for rollup in ROLLUPS for key in server.tables[rollup.table].counts}
    return [[str(monday)] for monday in sorted({day - timedelta(days=day.weekday()) for day in days})]


def _twice(server: "Server", name: str) -> Rows:
    stored = Counter((row.project, row.id) for row in server.tables[name].rows)
    surplus = Counter[int]()
    for (project, _), n in stored.items():
        surplus[project] += n - 1
    return [[project, n] for project, n in sorted(surplus.items()) if n]


def _sums(server: "Server", name: str) -> Rows:
    found = Counter[int]()
    for key, n in server.tables[name].counts.items():
        found[key[0]] += n
    return [[project, n] for project, n in sorted(found.items())]


def _copied(server: "Server", table: str) -> Rows:
    column = {"issues": "version", "outcomes": "count"}.get(table)
    found = Counter[int]()
    for _, row in server.latest[table].values():
        found[row["project_id"]] += row[column] if column else 1
    return [[*item] for item in sorted(found.items())]


def _issues(server: "Server") -> Rows:
    stored = Counter((row.project, row.fingerprint) for row in server.tables["events"].rows)
    for (project, _, fingerprint), n in server.erasing.totals().items():
        stored[project, fingerprint] += n
    found: dict[tuple[int, date], list[int]] = {}
    for _, row in server.latest["issues"].values():
        if row["deleted"] or row["merged_into"]:
            continue
        counted, project = row["events"], row["project_id"]
        events = sum(stored[project, fingerprint] for fingerprint in row["fingerprints"])
        sums = found.setdefault((project, row["first_seen"].date()), [0] * 8)
        sums[0] += 1
        sums[1] += counted
        for first, differs in ((2, counted != events), (5, counted < events)):
            if differs:
                sums[first] += 1
                sums[first + 1] += counted
                sums[first + 2] += events
    return [[*key, *sums] for key, sums in sorted(found.items())]


def _ungrouped(server: "Server") -> Rows:
    grouped = {
        (row["project_id"], fingerprint)
        for _, row in server.latest["issues"].values()
        if not row["deleted"]
        for fingerprint in row["fingerprints"]
    }
    found = Counter(
        row.project for row in server.tables["events"].rows if (row.project, row.fingerprint) not in grouped
    )
    return [[project, n] for project, n in sorted(found.items())]
