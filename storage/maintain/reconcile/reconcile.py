"""Compares accepted, stored and counted events by project.

The rule is: accepted = stored + duplicate + deadLettered + erased.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final

from msgspec import Struct

from schemas.times import OLDEST
from storage.exactly_once.consistent_read import NoConsistentRead, read_consistently, read_in_pause
from storage.maintain.audit.retention_history import UNKNOWN, read_retention
from storage.maintain.reconcile.duplicates import TABLES
from storage.shards import Servers
from storage.tables.erased import ERASED, projects
from storage.tables.rollups import ROLLUPS, difference

# Outcomes and issues are inserted from other topics at other times, so waiting for their inserts would not help.
_EVENTS_AND_ERASED: Final = ("events", "erasing", "erased_counts", "erasures")
OUTCOMES: Final = """
    SELECT project_id, toDate(minute) AS day, outcome, sum(count) FROM outcomes FINAL
    WHERE outcome IN ('accepted', 'duplicate', 'deadLettered') GROUP BY project_id, day, outcome"""
STORED: Final = "SELECT project_id, toDate(received) AS day, count() FROM events GROUP BY project_id, day"
# Our own text.
ERASED_BY_DAY: Final = f"SELECT project_id, day, sum(n) FROM ({ERASED}) GROUP BY project_id, day"  # noqa: S608
EVENTS: Final = "SELECT project_id, toDate(ts) AS day, count() FROM events GROUP BY project_id, day"
PAYLOADS: Final = "SELECT project_id, toDate(ts) AS day, count() FROM payloads GROUP BY project_id, day"
TWICE: Final = {table: f"{table} stored twice" for table in TABLES}
"""The name of a difference by duplicate rows, by table."""
COUNT_TWICE: Final = """
    SELECT project_id, sum(n - 1)
    FROM (SELECT project_id, id, count() AS n FROM {table} GROUP BY project_id, id HAVING n > 1)
    GROUP BY project_id"""
WEEKS: Final = """
    SELECT DISTINCT extract(partition, '[0-9]{4}-[0-9]{2}-[0-9]{2}') FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}"""
COPIES: Final = {
    "issues": "SELECT project_id, sum(version) FROM issues FINAL GROUP BY project_id",
    "issue_activity": "SELECT project_id, count() FROM issue_activity FINAL GROUP BY project_id",
    "changes": "SELECT project_id, count() FROM changes FINAL GROUP BY project_id",
    "outcomes": "SELECT project_id, sum(count) FROM outcomes FINAL GROUP BY project_id",
}
"""A number by project that grows with the table, which is the same on each server."""
BOUNDED: Final = {
    # Whole tables are compared; they spill to disk.
    "max_bytes_before_external_group_by": 256 << 20,
    "join_algorithm": "grace_hash,hash",
    "max_execution_time": 3600,
}


def _differing(condition: str) -> str:
    return f"countIf({condition}), sumIf(issues.events, {condition}), sumIf(stored, {condition})"


ISSUES: Final = f"""
    SELECT project_id, toDate(first) AS day, count(), sum(issues.events), {_differing("issues.events != stored")},
        {_differing("issues.events < stored")}
    FROM
    (
        SELECT project_id, issue_id, any(issues.events) AS events, sum(f.n) AS stored, min(issues.first_seen) AS first
        FROM (SELECT project_id, issue_id, events, first_seen, arrayJoin(fingerprints) AS fingerprint
              FROM issues FINAL WHERE deleted = 0 AND merged_into = 0) AS issues
        LEFT JOIN
        (
            SELECT project_id, fingerprint, sum(n) AS n
            FROM
            (
                SELECT project_id, fingerprint, count() AS n FROM events GROUP BY project_id, fingerprint
                UNION ALL SELECT project_id, fingerprint, n FROM ({ERASED})
            )
            GROUP BY project_id, fingerprint
        ) AS f
            USING (project_id, fingerprint)
        GROUP BY project_id, issue_id
    ) AS issues
    GROUP BY project_id, day"""  # noqa: S608 - our own text
UNGROUPED: Final = """
    SELECT project_id, count() FROM events
    WHERE (project_id, fingerprint) NOT IN
        (SELECT project_id, arrayJoin(fingerprints) FROM issues FINAL WHERE deleted = 0)
    GROUP BY project_id"""

Day = tuple[int, date]


class FigureDifference(Struct, frozen=True, rename="camel"):
    """Two numbers that should be equal; `day` is empty for totals of a project."""

    project_id: str
    what: str
    expected: int
    found: int
    day: str = ""
    keys: int = 0


class ProjectFigures(Struct, rename="camel"):
    """The counts of one project by source, over all stored days."""

    project_id: str
    name: str = ""
    accepted: int = 0
    duplicates: int = 0
    dead_lettered: int = 0
    stored: int = 0
    erased: int = 0
    payloads: int = 0
    issues: int = 0
    counted_in_issues: int = 0
    rollups: dict[str, int] = {}


class Reconciliation(Struct, frozen=True, rename="camel"):
    """Counts by project, and all differences; `quiet` is False if no consistent read was possible."""

    projects: list[ProjectFigures]
    differences: list[FigureDifference]
    quiet: bool

    @property
    def rollup_days(self) -> set[tuple[int, str]]:
        """Projects and days of the rollups that differ."""
        tables = {rollup.table for rollup in ROLLUPS}
        return {(int(d.project_id), d.day) for d in self.differences if d.what in tables}

    def differs(self, *names: str) -> bool:
        """Whether one of these numbers differs anywhere."""
        return any(difference.what in names for difference in self.differences)

    def is_incomplete(self, table: str) -> bool:
        """Whether one of several servers lacks rows of a table that is the same on each."""
        return any(difference.what.startswith(_copy(table)) for difference in self.differences)


def _copy(table: str, shard: object = "") -> str:
    return f"{table} on shard {shard}"


def compare(
    servers: Servers, today: date, quiet_seconds: float = 1.0, pause_seconds: float = 60.0
) -> Reconciliation:
    """Compare everything. Raises ClickHouseError.

    Tables are compared by consistent reads. If none succeeds within `quiet_seconds`, the writers are asked to
    pause, for at most `pause_seconds`.
    """
    reading = _Reading(servers, today, quiet_seconds, pause_seconds)
    differences = [
        *reading.endings(),
        *reading.twice(),
        *reading.payloads(),
        *reading.rollups(),
        *reading.issues(),
        *reading.copies(),
    ]
    # Outcomes of erased projects are erased too, and some were still in the topic.
    erased = projects(servers[0].whole)
    return Reconciliation(
        projects=[reading.figures[project] for project in sorted(reading.figures.keys() - erased)],
        differences=sorted(
            (difference for difference in differences if int(difference.project_id) not in erased),
            key=lambda d: (int(d.project_id), d.what, d.day),
        ),
        quiet=reading.quiet,
    )


class _Reading:
    """One pass over the tables, which fills `figures`."""

    def __init__(self, servers: Servers, today: date, quiet_seconds: float, pause_seconds: float) -> None:
        self.figures: dict[int, ProjectFigures] = {}
        self.quiet = True
        self._client = servers[0].whole
        self._servers = servers
        self._own = [server.own for server in servers]
        self._today = today
        self._quiet_seconds = quiet_seconds
        self._pause_seconds = pause_seconds
        self._retention = read_retention(self._client)

    def _rows(self, sql: str, **parameters: Any) -> Sequence[Sequence[Any]]:
        return self._client.query(sql, parameters=parameters, settings=dict(BOUNDED)).result_rows

    def _together(self, tables: Sequence[str], *queries: str) -> list[Sequence[Sequence[Any]]]:
        """The results of queries on `tables`, from one consistent read."""

        def read(_blocks: int = 0) -> list[Sequence[Sequence[Any]]]:
            return [self._rows(sql) for sql in queries]

        try:
            return read_consistently(self._own, tables, read, self._quiet_seconds)
        except NoConsistentRead:
            pass
        try:
            return read_in_pause(self._own, tables, read, self._pause_seconds)
        except NoConsistentRead:
            self.quiet = False
            return read()

    def _of(self, project: int) -> ProjectFigures:
        if project not in self.figures:
            name = self._retention.get(project, UNKNOWN).name
            self.figures[project] = ProjectFigures(project_id=str(project), name=name, rollups={})
        return self.figures[project]

    def _oldest(self, project: int, came: date, *, payloads: bool = False) -> date:
        """The day up to which events received since a day may have expired."""
        shortest = self._retention.get(project, UNKNOWN).shortest(came)
        return self._today - timedelta(days=shortest.payloads if payloads else shortest.events)

    def endings(self) -> Iterator[FigureDifference]:
        """Accepted = stored + duplicate + dead letters + erased, by day of receipt."""
        counts, rows, erasures = self._together(_EVENTS_AND_ERASED, OUTCOMES, STORED, ERASED_BY_DAY)
        outcomes: dict[Day, dict[str, int]] = {}
        for project, day, outcome, count in counts:
            outcomes.setdefault((project, day), {})[outcome] = int(count)
        stored: dict[Day, int] = {(project, day): int(n) for project, day, n in rows}
        erased: dict[Day, int] = {(project, day): int(n) for project, day, n in erasures}
        for project, day in sorted(outcomes.keys() | stored.keys() | erased.keys()):
            ends, found = outcomes.get((project, day), {}), stored.get((project, day), 0)
            accepted, duplicates = ends.get("accepted", 0), ends.get("duplicate", 0)
            dead, forgotten = ends.get("deadLettered", 0), erased.get((project, day), 0)
            figures = self._of(project)
            figures.accepted += accepted
            figures.duplicates += duplicates
            figures.dead_lettered += dead
            figures.stored += found
            figures.erased += forgotten
            expected = accepted - duplicates - dead - forgotten
            # The event time may precede receipt by `OLDEST`, and such events expire sooner.
            if day - OLDEST > self._oldest(project, day) and found != expected:
                yield FigureDifference(str(project), "stored", expected, found, str(day))

    def twice(self) -> Iterator[FigureDifference]:
        for table, what in TWICE.items():
            for project, surplus in self._rows(COUNT_TWICE.format(table=table)):
                yield FigureDifference(str(project), what, 0, int(surplus))

    def payloads(self) -> Iterator[FigureDifference]:
        """The number of payloads and of events, by day, within the payload retention."""
        there, found = self._together(TABLES, EVENTS, PAYLOADS)
        events: dict[Day, int] = {(project, day): int(n) for project, day, n in there}
        payloads: dict[Day, int] = {(project, day): int(n) for project, day, n in found}
        for project, day in sorted(events.keys() | payloads.keys()):
            expected, stored = events.get((project, day), 0), payloads.get((project, day), 0)
            self._of(project).payloads += stored
            if day > self._oldest(project, day, payloads=True) and stored != expected:
                yield FigureDifference(str(project), "payloads", expected, stored, str(day))

    def rollups(self) -> Iterator[FigureDifference]:
        """Every key of every rollup, a week at a time."""
        tables = ["events", *(rollup.table for rollup in ROLLUPS)]
        weeks = sorted(
            {
                date.fromisoformat(row[0])
                for client in self._own
                for row in client.query(WEEKS, parameters={"tables": tables}).result_rows
            }
        )
        for rollup in ROLLUPS:
            sums = f"SELECT project_id, sum(n) FROM {rollup.table} GROUP BY project_id"  # noqa: S608 - our own names
            for project, total in self._rows(sums):
                self._of(project).rollups[rollup.table] = int(total)
            for week in weeks:
                sql = difference(rollup, _week_of("ts", week), _week_of(rollup.time, week), sums=True)
                by_day = f"""
                    SELECT project_id, toDate({rollup.time}) AS day, sum(e_n), sum(r_n), count()
                    FROM ({sql}) GROUP BY project_id, day"""  # noqa: S608 - names of our own schema and dates
                for project, day, expected, found, keys in self._together(("events", rollup.table), by_day)[
                    0
                ]:
                    yield FigureDifference(
                        str(project), rollup.table, int(expected), int(found), str(day), int(keys)
                    )

    def issues(self) -> Iterator[FigureDifference]:
        """The lifetime counts of issues and the events of their fingerprints, including erased events."""
        counted_rows, ungrouped = self._together(_EVENTS_AND_ERASED, ISSUES, UNGROUPED)
        wrong: dict[int, list[int]] = {}
        for project, first_day, issues, counted, *differing in counted_rows:
            figures = self._of(project)
            figures.issues += int(issues)
            figures.counted_in_issues += int(counted)
            # Lifetime counts exceed the stored events once events have expired.
            young = self._oldest(project, first_day) < first_day
            found = wrong.setdefault(project, [0, 0, 0])
            for index, number in enumerate(differing[:3] if young else differing[3:]):
                found[index] += int(number)
        for project, (keys, counted, stored) in wrong.items():
            if keys:
                yield FigureDifference(str(project), "issues", stored, counted, keys=keys)
        for project, events in ungrouped:
            yield FigureDifference(str(project), "events without issue", 0, int(events))

    def copies(self) -> Iterator[FigureDifference]:
        """Whether each server has all rows of the tables that are the same on each."""
        if len(self._servers) == 1:
            return
        for table, sql in COPIES.items():
            numbers = {
                server.shard: {
                    int(project): int(number)
                    for project, number in server.own.query(sql, settings=dict(BOUNDED)).result_rows
                }
                for server in self._servers
            }
            for project in set[int]().union(*numbers.values()):
                expected = max(number.get(project, 0) for number in numbers.values())
                for shard, number in numbers.items():
                    if number.get(project, 0) != expected:
                        yield FigureDifference(
                            str(project), _copy(table, shard), expected, number.get(project, 0)
                        )


def _week_of(column: str, monday: date) -> str:
    # `toDate` of a UTC column is the day in UTC, whatever the server's time zone.
    return f"toDate({column}) >= '{monday}' AND toDate({column}) < '{monday + timedelta(days=7)}'"


def worst(differences: Iterable[FigureDifference], limit: int) -> list[FigureDifference]:
    """The largest differences."""
    return sorted(differences, key=lambda d: -abs(d.expected - d.found))[:limit]
