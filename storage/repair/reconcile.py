"""Compares what was accepted, stored and counted, project by project: accepted = stored + duplicate + deadLettered + erased."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final

from msgspec import Struct

from schemas.times import OLDEST
from storage.client import Client
from storage.erase.erased import ERASED, projects
from storage.repair.consistent_read import NoConsistentRead, in_a_pause, quietly
from storage.repair.duplicates import TABLES
from storage.repair.retention_history import UNKNOWN, read_retention
from storage.repair.rollups import ROLLUPS, difference

# Outcomes and issues come by topics of their own, at other times than their events: a moment without their inserts says nothing.
_EVENTS_AND_ERASED: Final = ("events", "erasing", "erased_counts", "erasures")
_OUTCOMES: Final = """
    SELECT project_id, toDate(minute) AS day, outcome, sum(count) FROM outcomes FINAL
    WHERE outcome IN ('accepted', 'duplicate', 'deadLettered') GROUP BY project_id, day, outcome"""
_STORED: Final = "SELECT project_id, toDate(received) AS day, count() FROM events GROUP BY project_id, day"
_ERASED_BY_DAY: Final = f"SELECT project_id, day, sum(n) FROM ({ERASED}) GROUP BY project_id, day"  # noqa: S608 - our own text
_EVENTS: Final = "SELECT project_id, toDate(ts) AS day, count() FROM events GROUP BY project_id, day"
_PAYLOADS: Final = "SELECT project_id, toDate(ts) AS day, count() FROM payloads GROUP BY project_id, day"
TWICE: Final = {table: f"{table} stored twice" for table in TABLES}
"""How a surplus of rows is called, by table."""
_TWICE: Final = """
    SELECT project_id, sum(n - 1) FROM (SELECT project_id, id, count() AS n FROM {table} GROUP BY project_id, id HAVING n > 1)
    GROUP BY project_id"""
_WEEKS: Final = """
    SELECT DISTINCT extract(partition, '[0-9]{4}-[0-9]{2}-[0-9]{2}') FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}"""
BOUNDED: Final = {
    # Whole tables are compared: what doesn't fit into memory goes to disk.
    "max_bytes_before_external_group_by": 256 << 20,
    "join_algorithm": "grace_hash,hash",
    "max_execution_time": 3600,
}


def _differing(condition: str) -> str:
    return f"countIf({condition}), sumIf(issues.events, {condition}), sumIf(stored, {condition})"


_ISSUES: Final = f"""
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
_UNGROUPED: Final = """
    SELECT project_id, count() FROM events
    WHERE (project_id, fingerprint) NOT IN
        (SELECT project_id, arrayJoin(fingerprints) FROM issues FINAL WHERE deleted = 0)
    GROUP BY project_id"""

Day = tuple[int, date]


class FigureDifference(Struct, frozen=True, rename="camel"):
    """Two figures that should be equal; `day` is empty for those of a project's whole life."""

    project_id: str
    what: str
    expected: int
    found: int
    day: str = ""
    keys: int = 0


class ProjectFigures(Struct, rename="camel"):
    """What each part says of one project, over all days that are still kept."""

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
    """Figures by project, and every difference; `quiet` is False when blocks were inserted all the while."""

    projects: list[ProjectFigures]
    differences: list[FigureDifference]
    quiet: bool

    @property
    def rollup_days(self) -> set[tuple[int, str]]:
        """Projects and days of the rollups that differ."""
        tables = {rollup.table for rollup in ROLLUPS}
        return {(int(d.project_id), d.day) for d in self.differences if d.what in tables}

    def differs(self, *what: str) -> bool:
        """Whether one of these figures differs somewhere."""
        return any(difference.what in what for difference in self.differences)


def compare(
    client: Client, today: date, quiet_seconds: float = 1.0, pause_seconds: float = 60.0
) -> Reconciliation:
    """Compare everything. Raises ClickHouseError.

    What belongs together is read while no block is being inserted. Where there is no such moment within `quiet_seconds`, the writers are
    asked to pause for it, at most for `pause_seconds`.
    """
    reading = _Reading(client, today, quiet_seconds, pause_seconds)
    found = [*reading.endings(), *reading.twice(), *reading.payloads(), *reading.rollups(), *reading.issues()]
    # Their outcomes are erased too, and some were on their way.
    gone = projects(client)
    return Reconciliation(
        projects=[reading.figures[project] for project in sorted(reading.figures.keys() - gone)],
        differences=sorted(
            (difference for difference in found if int(difference.project_id) not in gone),
            key=lambda d: (int(d.project_id), d.what, d.day),
        ),
        quiet=reading.quiet,
    )


class _Reading:
    """One pass over the tables; `figures` fill as it goes."""

    def __init__(self, client: Client, today: date, quiet_seconds: float, pause_seconds: float) -> None:
        self.figures: dict[int, ProjectFigures] = {}
        self.quiet = True
        self._client = client
        self._today = today
        self._quiet_seconds = quiet_seconds
        self._pause_seconds = pause_seconds
        self._kept = read_retention(client)

    def _rows(self, sql: str, **parameters: Any) -> Sequence[Sequence[Any]]:
        return self._client.query(sql, parameters=parameters, settings=dict(BOUNDED)).result_rows

    def _together(self, tables: Sequence[str], *queries: str) -> list[Sequence[Sequence[Any]]]:
        """The answers of queries on `tables` that are compared with each other."""

        def read() -> list[Sequence[Sequence[Any]]]:
            return [self._rows(sql) for sql in queries]

        try:
            return quietly(self._client, tables, read, self._quiet_seconds)
        except NoConsistentRead:
            pass
        try:
            return in_a_pause(self._client, tables, read, self._pause_seconds)
        except NoConsistentRead:
            self.quiet = False
            return read()

    def _of(self, project: int) -> ProjectFigures:
        if project not in self.figures:
            name = self._kept.get(project, UNKNOWN).name
            self.figures[project] = ProjectFigures(project_id=str(project), name=name, rollups={})
        return self.figures[project]

    def _oldest(self, project: int, came: date, *, payloads: bool = False) -> date:
        """The day up to which something may have been dropped of what came on a day or later."""
        least = self._kept.get(project, UNKNOWN).least(came)
        return self._today - timedelta(days=least.payloads if payloads else least.events)

    def endings(self) -> Iterator[FigureDifference]:
        """Accepted = stored + duplicate + dead letters + erased, by day of receipt."""
        told, rows, gone = self._together(_EVENTS_AND_ERASED, _OUTCOMES, _STORED, _ERASED_BY_DAY)
        outcomes: dict[Day, dict[str, int]] = {}
        for project, day, outcome, count in told:
            outcomes.setdefault((project, day), {})[outcome] = int(count)
        stored: dict[Day, int] = {(project, day): int(n) for project, day, n in rows}
        erased: dict[Day, int] = {(project, day): int(n) for project, day, n in gone}
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
            # Events of a day may be as much older as a client's clock is believed, and be dropped sooner.
            if day - OLDEST > self._oldest(project, day) and found != expected:
                yield FigureDifference(str(project), "stored", expected, found, str(day))

    def twice(self) -> Iterator[FigureDifference]:
        """Ids that a table has more than once."""
        for table, what in TWICE.items():
            for project, surplus in self._rows(_TWICE.format(table=table)):
                yield FigureDifference(str(project), what, 0, int(surplus))

    def payloads(self) -> Iterator[FigureDifference]:
        """As many payloads as events, by day, as long as payloads are kept."""
        there, found = self._together(TABLES, _EVENTS, _PAYLOADS)
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
        weeks = sorted(date.fromisoformat(row[0]) for row in self._rows(_WEEKS, tables=tables))
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
        """What issues have counted, for life, against the events of their fingerprints, those that were erased among them."""
        counted_rows, ungrouped = self._together(_EVENTS_AND_ERASED, _ISSUES, _UNGROUPED)
        wrong: dict[int, list[int]] = {}
        for project, first_day, issues, counted, *differing in counted_rows:
            figures = self._of(project)
            figures.issues += int(issues)
            figures.counted_in_issues += int(counted)
            # Counts of issues are for life: once events are dropped they are larger than what is stored.
            young = self._oldest(project, first_day) < first_day
            found = wrong.setdefault(project, [0, 0, 0])
            for place, number in enumerate(differing[:3] if young else differing[3:]):
                found[place] += int(number)
        for project, (keys, counted, stored) in wrong.items():
            if keys:
                yield FigureDifference(str(project), "issues", stored, counted, keys=keys)
        for project, events in ungrouped:
            yield FigureDifference(str(project), "events without issue", 0, int(events))


def _week_of(column: str, monday: date) -> str:
    # `toDate` of a column in UTC is the day in UTC, whatever the server's own zone.
    return f"toDate({column}) >= '{monday}' AND toDate({column}) < '{monday + timedelta(days=7)}'"


def worst(differences: Iterable[FigureDifference], limit: int) -> list[FigureDifference]:
    """The differences that are farthest apart."""
    return sorted(differences, key=lambda d: -abs(d.expected - d.found))[:limit]
