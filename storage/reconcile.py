"""Compares what was accepted, stored and counted, project by project: accepted = stored + duplicate + deadLettered."""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from schemas.projects import DEFAULT_RETENTION_DAYS
from schemas.times import OLDEST
from storage.client import Client
from storage.quiet import NeverQuiet, quietly
from storage.rollups import ROLLUPS, difference

_OUTCOMES: Final = """
    SELECT project_id, toDate(minute) AS day, outcome, sum(count) FROM outcomes FINAL
    WHERE outcome IN ('accepted', 'duplicate', 'deadLettered') GROUP BY project_id, day, outcome"""
_STORED: Final = """
    SELECT project_id, toDate(received) AS day, count(), uniqExact(id) FROM events GROUP BY project_id, day"""
_EVENTS: Final = "SELECT project_id, toDate(ts) AS day, count() FROM events GROUP BY project_id, day"
_PAYLOADS: Final = """
    SELECT project_id, toDate(ts) AS day, count(), uniqExact(id) FROM payloads GROUP BY project_id, day"""
_ISSUES: Final = """
    SELECT project_id, count(), countIf(issues.events != stored), sum(issues.events), sum(stored)
    FROM
    (
        SELECT project_id, issue_id, any(issues.events) AS events, sum(f.n) AS stored
        FROM (SELECT project_id, issue_id, events, arrayJoin(fingerprints) AS fingerprint
              FROM issues FINAL WHERE deleted = 0 AND merged_into = 0) AS issues
        LEFT JOIN (SELECT project_id, fingerprint, count() AS n FROM events GROUP BY project_id, fingerprint) AS f
            USING (project_id, fingerprint)
        GROUP BY project_id, issue_id
    ) AS issues
    GROUP BY project_id"""
_UNGROUPED: Final = """
    SELECT project_id, count() FROM events
    WHERE (project_id, fingerprint) NOT IN
        (SELECT project_id, arrayJoin(fingerprints) FROM issues FINAL WHERE deleted = 0)
    GROUP BY project_id"""
_PROJECTS: Final = (
    "SELECT project_id, name, retention_days, payload_days FROM projects FINAL WHERE deleted = 0"
)

Day = tuple[int, date]


class Difference(Struct, frozen=True, rename="camel"):
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
    payloads: int = 0
    issues: int = 0
    counted_in_issues: int = 0
    rollups: dict[str, int] = {}


class Kept(Struct, frozen=True):
    """For how many days a project keeps events and payloads."""

    name: str
    events: int
    payloads: int


class Reconciliation(Struct, frozen=True, rename="camel"):
    """Figures by project, and every difference; `quiet` is False when blocks were inserted all the while."""

    projects: list[ProjectFigures]
    differences: list[Difference]
    quiet: bool

    @property
    def rollup_days(self) -> set[tuple[int, str]]:
        """Projects and days of the rollups that differ."""
        tables = {rollup.table for rollup in ROLLUPS}
        return {(int(d.project_id), d.day) for d in self.differences if d.what in tables}

    def differs(self, *what: str) -> bool:
        """Whether one of these figures differs somewhere."""
        return any(difference.what in what for difference in self.differences)


def compare(client: Client, today: date, quiet_seconds: float = 20.0) -> Reconciliation:
    """Compare everything. Raises ClickHouseError.

    Readings are taken while no block is being inserted, where such a moment is found within `quiet_seconds`.
    """
    reading = _Reading(client, today)
    try:
        projects, differences = quietly(client, reading.all, quiet_seconds)
        return Reconciliation(projects, differences, quiet=True)
    except NeverQuiet:
        projects, differences = reading.all()
        return Reconciliation(projects, differences, quiet=False)


class _Reading:
    """One pass over the tables."""

    def __init__(self, client: Client, today: date) -> None:
        self._client = client
        self._today = today

    def all(self) -> tuple[list[ProjectFigures], list[Difference]]:
        self._kept = {
            int(project): Kept(name, events, payloads)
            for project, name, events, payloads in self._client.query(_PROJECTS).result_rows
        }
        self._figures: dict[int, ProjectFigures] = {}
        found = [*self._endings(), *self._payloads(), *self._rollups(), *self._issues()]
        figures = [self._figures[project] for project in sorted(self._figures)]
        return figures, sorted(found, key=lambda d: (int(d.project_id), d.what, d.day))

    def _of(self, project: int) -> ProjectFigures:
        if project not in self._figures:
            name = self._kept[project].name if project in self._kept else ""
            self._figures[project] = ProjectFigures(project_id=str(project), name=name, rollups={})
        return self._figures[project]

    def _oldest(self, project: int, *, payloads: bool = False) -> date:
        kept = self._kept.get(project, Kept("", DEFAULT_RETENTION_DAYS, DEFAULT_RETENTION_DAYS))
        return self._today - timedelta(days=kept.payloads if payloads else kept.events)

    def _endings(self) -> Iterator[Difference]:
        outcomes: dict[Day, dict[str, int]] = {}
        for project, day, outcome, count in self._client.query(_OUTCOMES).result_rows:
            outcomes.setdefault((project, day), {})[outcome] = int(count)
        stored = {(p, day): (int(n), int(ids)) for p, day, n, ids in self._client.query(_STORED).result_rows}
        for project, day in sorted(outcomes.keys() | stored.keys()):
            ends = outcomes.get((project, day), {})
            rows, ids = stored.get((project, day), (0, 0))
            accepted, duplicates = ends.get("accepted", 0), ends.get("duplicate", 0)
            dead = ends.get("deadLettered", 0)
            figures = self._of(project)
            figures.accepted += accepted
            figures.duplicates += duplicates
            figures.dead_lettered += dead
            figures.stored += rows
            # Events of a day may be as much older as a client's clock is believed, and be dropped sooner.
            if day - OLDEST > self._oldest(project) and rows != accepted - duplicates - dead:
                yield Difference(str(project), "stored", accepted - duplicates - dead, rows, str(day))
            if rows != ids:
                yield Difference(str(project), "stored twice", ids, rows, str(day))

    def _payloads(self) -> Iterator[Difference]:
        events = {(p, day): int(n) for p, day, n in self._client.query(_EVENTS).result_rows}
        rows = {(p, day): (int(n), int(ids)) for p, day, n, ids in self._client.query(_PAYLOADS).result_rows}
        for project, day in sorted(events.keys() | rows.keys()):
            expected = events.get((project, day), 0)
            found, ids = rows.get((project, day), (0, 0))
            self._of(project).payloads += found
            if day > self._oldest(project, payloads=True) and found != expected:
                yield Difference(str(project), "payloads", expected, found, str(day))
            if found != ids:
                yield Difference(str(project), "payloads twice", ids, found, str(day))

    def _rollups(self) -> Iterator[Difference]:
        for rollup in ROLLUPS:
            sums = f"SELECT project_id, sum(n) FROM {rollup.table} GROUP BY project_id"  # noqa: S608 - our own names
            for project, total in self._client.query(sums).result_rows:
                self._of(project).rollups[rollup.table] = int(total)
            differing = f"""
                SELECT project_id, toDate({rollup.time}) AS day, sum(e_n), sum(r_n), count()
                FROM ({difference(rollup, "1", "1", sums=True)}) GROUP BY project_id, day"""  # noqa: S608
            for project, day, expected, found, keys in self._client.query(differing).result_rows:
                yield Difference(str(project), rollup.table, int(expected), int(found), str(day), int(keys))

    def _issues(self) -> Iterator[Difference]:
        for project, issues, differing, counted, stored in self._client.query(_ISSUES).result_rows:
            figures = self._of(project)
            figures.issues, figures.counted_in_issues = int(issues), int(counted)
            # Counts of issues are for life: once events are dropped they are larger than what is stored.
            young = self._oldest(project) < self._first_day(project)
            if differing and (young or counted < stored):
                yield Difference(str(project), "issues", int(stored), int(counted), keys=int(differing))
        for project, events in self._client.query(_UNGROUPED).result_rows:
            yield Difference(str(project), "events without issue", 0, int(events))

    def _first_day(self, project: int) -> date:
        first = self._client.query(
            "SELECT toDate(min(first_seen)) FROM issues WHERE project_id = {project:UInt32}",
            parameters={"project": project},
        ).result_rows[0][0]
        assert isinstance(first, date)
        return first


def worst(differences: Iterable[Difference], limit: int) -> list[Difference]:
    """The differences that are farthest apart."""
    return sorted(differences, key=lambda d: -abs(d.expected - d.found))[:limit]
