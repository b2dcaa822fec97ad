"""The list of a project's issues."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from dashboard import query_warnings
from dashboard.bulk_changes import MAX_CHANGED
from dashboard.dependencies import State, state_of
from dashboard.pages import bulk_change_page
from dashboard.pages.list_parameters import (
    PLAIN_SORT,
    PLAIN_STATE,
    ListParameters,
    read_parameters,
    syntax_problem,
    unknown_keys,
)
from dashboard.pages.onboarding import first_steps
from dashboard.pages.render import page
from dashboard.pages.view_forms import current_view, query_to_save, view_link
from dashboard.person_query import with_person
from dashboard.requested_project import project_of
from dashboard.time_ranges import DURATIONS
from dashboard.view.charts import events_chart
from dashboard.view.filters import TABS
from dashboard.view.release_marks import release_marks, suggested
from dashboard.view.time_texts import is_new
from query.tree import STATES
from schemas.projects import Project
from schemas.read_api import IssuePage, KeyWarning, Release, Sort
from storage.errors import BadQuery, NotFound, QueryTooExpensive
from storage.read.counts.completion import SUGGESTED, CompleteField
from storage.read.counts.count_calls import GetProjectStats
from storage.read.events.event_detail import GetProjectEvent
from storage.read.issues.issue_list import ListIssues

PAGE_SIZE = 25
LIST_SECONDS = 0.5
"""How long a list waits for the original sources of its issues."""
_SORTS: Final[Mapping[Sort, tuple[str, str]]] = {
    PLAIN_SORT: ("Priority", ""),
    "trend": ("Trend", "w-trend"),
    "events": ("Events", "w-number right"),
    "users": ("Users", "w-number right"),
    "lastSeen": ("Last seen", "w-time right"),
    "firstSeen": ("First seen", "w-time right"),
}
"""The label and the classes of the column that each sort belongs to."""


async def show_issue_list(request: web.Request) -> web.Response:
    """The issues that match the parameters, or onboarding if the project has no events."""
    state, project = state_of(request), project_of(request)
    now_ms = state.dependencies.now_ms()
    parameters = read_parameters(request, now_ms, PLAIN_STATE)
    problem = syntax_problem(parameters.query)
    error = problem.message if problem is not None else ""
    issues, figure = IssuePage([], None), None
    releases: Sequence[Release] = ()
    warnings: list[KeyWarning] = []
    if not error:
        try:
            text = with_person(request, parameters.text)
            issues, series, warnings, releases = await asyncio.gather(
                _issues(state, project, parameters, text),
                state.dependencies.reader.read(
                    GetProjectStats(project.number, text, **parameters.time_range.bounds)
                ),
                query_warnings.of_project(state, project.number, parameters.query),
                state.releases.of(state.dependencies.reader, project.number),
            )
            figure = events_chart(series, release_marks(releases))
        except (BadQuery, QueryTooExpensive) as failure:
            error = str(failure)
    if not error and not issues.issues and not parameters.is_filtered and await _is_empty(state, project):
        return page(
            request, "onboarding.html", project=project, active="issues", **first_steps(request, project)
        )
    undo, undo_issues, merged_into = bulk_change_page.undo_of(
        request.query.get("done", ""), request.query.get("was", "")
    )
    environments, sources = await asyncio.gather(
        state.dependencies.reader.read(CompleteField(project.number, "environment")),
        state.resolver.sources(project.number, issues.issues, LIST_SECONDS),
    )
    return page(
        request,
        "issue_list.html",
        400 if error else 200,
        project=project,
        active="issues",
        parameters=parameters,
        issues=issues,
        culprits={issue: source.culprit for issue, source in sources.items() if source.culprit},
        figure=figure,
        error=error,
        problem=problem,
        unknown_keys=unknown_keys(parameters, warnings),
        durations=DURATIONS,
        note=bulk_change_page.result_of(request.query),
        made=bulk_change_page.made_notice(state, project, request.query.get("made", "")),
        most_changed=MAX_CHANGED,
        releases=suggested(releases),
        # One scale for all rows, and "new" only where it tells some from the others.
        peak=max((count for issue in issues.issues for count in issue.trend), default=0) or 1,
        says_new=2 * sum(is_new(one.first_seen, now_ms) for one in issues.issues) <= len(issues.issues),
        trend_of="24 h" if parameters.time_range.is_short(now_ms) else "14 d",
        sorts=[(sort, label) for sort, (label, _) in _SORTS.items()],
        columns={sort: css for sort, (_, css) in _SORTS.items()},
        plain_sort=PLAIN_SORT,
        suggested=" ".join(SUGGESTED),
        states=" ".join(STATES),
        undo=undo,
        undo_issues=undo_issues,
        merged_into=merged_into,
        is_pending="pending" in request.query,
        keep=f"?{urlencode({'query': parameters.of_events})}" if parameters.of_events else "",
        tabs={"": "All"} | TABS,
        view=current_view(project, parameters),
        view_link=view_link,
        to_save=query_to_save(parameters),
        environments=sorted({value.value for value in environments.values} | {parameters.environment} - {""}),
    )


async def _issues(state: State, project: Project, parameters: ListParameters, text: str) -> IssuePage:
    return await state.dependencies.reader.read(
        ListIssues(
            project.number,
            text,
            **parameters.time_range.bounds,
            sort=parameters.sort,
            limit=PAGE_SIZE,
            cursor=parameters.cursor,
        )
    )


async def _is_empty(state: State, project: Project) -> bool:
    try:
        await state.dependencies.reader.read(GetProjectEvent(project.number, "latest"))
    except NotFound:
        return True
    return False
