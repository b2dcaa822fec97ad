"""The list of a project's issues."""

import asyncio

from aiohttp import web

from dashboard import query_warnings
from dashboard.api.operation import find_project
from dashboard.dependencies import State, state_of
from dashboard.pages import bulk
from dashboard.pages.list_parameters import ListParameters, doubts_of, query_fault, read_parameters
from dashboard.pages.onboarding import first_steps
from dashboard.pages.render import page
from dashboard.pages.spans import LENGTHS
from dashboard.pages.views import current_view, text_to_save, view_link
from dashboard.view.filters import TABS
from dashboard.view.series import events_chart
from schemas.projects import Project
from storage.errors import BadQuery, NotFound, QueryTooExpensive
from storage.reader.answers import IssuePage, KeyWarning
from storage.reader.completion import CompleteField
from storage.reader.count_calls import GetProjectStats
from storage.reader.event_detail import GetProjectEvent
from storage.reader.issue_list import ListIssues

PAGE = 25


async def show(request: web.Request) -> web.Response:
    """Issues that the address asks for; the first steps where nothing was ever sent."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    asked = read_parameters(request, state.parts.now_ms())
    fault = query_fault(asked.query)
    wrong = fault.words if fault is not None else ""
    found, figure = IssuePage([], None), None
    warnings: list[KeyWarning] = []
    if not wrong:
        try:
            found, series, warnings = await asyncio.gather(
                _issues(state, project, asked),
                state.parts.reader.read(
                    GetProjectStats(project.number, asked.text, start=asked.span.start, end=asked.span.end)
                ),
                query_warnings.of_project(state, project.number, asked.query),
            )
            figure = events_chart(series)
        except (BadQuery, QueryTooExpensive) as error:
            wrong = str(error)
    if not wrong and not found.issues and not asked.is_filtered and await _is_empty(state, project):
        return page(
            request, "onboarding.html", project=project, active="issues", **first_steps(request, project)
        )
    environments = await state.parts.reader.read(CompleteField(project.number, "environment"))
    return page(
        request,
        "issue_list.html",
        400 if wrong else 200,
        project=project,
        active="issues",
        asked=asked,
        found=found,
        figure=figure,
        wrong=wrong,
        fault=fault,
        doubts=doubts_of(asked, warnings),
        lengths=LENGTHS,
        note=bulk.words(request.query.get("done", ""), request.query.get("count", "")),
        can_change=state.parts.changes is not None,
        tabs={"": "All"} | TABS,
        view=current_view(project, asked),
        view_link=view_link,
        to_save=text_to_save(asked),
        environments=sorted({value.value for value in environments.values} | {asked.environment} - {""}),
    )


async def _issues(state: State, project: Project, asked: ListParameters) -> IssuePage:
    return await state.parts.reader.read(
        ListIssues(
            project.number,
            asked.text,
            start=asked.span.start,
            end=asked.span.end,
            sort=asked.sort,
            limit=PAGE,
            cursor=asked.cursor,
        )
    )


async def _is_empty(state: State, project: Project) -> bool:
    try:
        await state.parts.reader.read(GetProjectEvent(project.number, "latest"))
    except NotFound:
        return True
    return False
