"""Figures of several projects: their events, and their issues that are new or escalate."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from query.tree import Is
from schemas.times import HOUR_MS
from storage.read.execute import Sql
from storage.read.query.query_sql import Parameters, SqlScope, issue_condition
from storage.read.query.ranges import floor, resolve_range
from storage.read.reader import ReadCall, Session


class ProjectCounts(Struct, frozen=True):
    """Events of the last 14 days, and the open issues among them that are new, and that escalate."""

    events: int = 0
    new: int = 0
    escalating: int = 0


class CountProjects(ReadCall[dict[int, ProjectCounts]], frozen=True):
    """The figures of projects, in full hours."""

    projects: Sequence[int]

    async def fetch(self, session: Session) -> dict[int, ProjectCounts]:
        """A project without events is left out."""
        now_ms = session.now_ms()
        events, issues = await asyncio.gather(
            session.rows(_events(self.projects, now_ms)), session.rows(_issues(self.projects, now_ms))
        )
        states = {project: (new, escalating) for project, new, escalating in issues}
        return {project: ProjectCounts(count, *states.get(project, (0, 0))) for project, count in events}


def _start(now_ms: int) -> int:
    return floor(resolve_range(None, None, now_ms).start, HOUR_MS)


def _events(projects: Sequence[int], now_ms: int) -> Sql:
    parameters = Parameters()
    return Sql(
        "SELECT project_id, sum(n) FROM project_hour"
        f" WHERE project_id IN {parameters.add(list(projects), 'Array(UInt32)')}"
        f" AND hour >= toDateTime({parameters.moment(_start(now_ms))}, 'UTC') GROUP BY project_id",
        parameters.values,
    )


def _issues(projects: Sequence[int], now_ms: int) -> Sql:
    parameters = Parameters()
    scope = SqlScope(0, now_ms, parameters)
    new, escalating = (issue_condition(Is((state,)), scope) for state in ("new", "escalating"))
    return Sql(
        f"SELECT project_id, countIf({new}), countIf({escalating}) FROM issues FINAL"
        f" WHERE project_id IN {parameters.add(list(projects), 'Array(UInt32)')} AND deleted = 0 AND merged_into = 0"
        f" AND last_seen >= {parameters.moment(_start(now_ms))} GROUP BY project_id",
        parameters.values,
    )
