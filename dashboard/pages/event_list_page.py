"""The events of an issue."""

import asyncio

from aiohttp import web

from dashboard import query_warnings
from dashboard.dependencies import state_of
from dashboard.http.inputs import read_issue
from dashboard.pages.list_parameters import read_parameters, syntax_problem, unknown_keys
from dashboard.pages.render import page
from dashboard.person_query import with_person
from dashboard.requested_project import find_project
from dashboard.time_ranges import DURATIONS
from schemas.read_api import EventPage, KeyWarning
from storage.errors import BadQuery, QueryTooExpensive
from storage.read.events.event_calls import ListIssueEvents
from storage.read.issues.issue_calls import GetIssue

PAGE_SIZE = 50


async def show_events(request: web.Request) -> web.Response:
    """The events that match the parameters, newest first."""
    state = state_of(request)
    issue_id = read_issue(request.match_info["issue"])
    parameters = read_parameters(request, state.dependencies.now_ms())
    reader, time_range = state.dependencies.reader.for_page(), parameters.time_range
    events, problem = EventPage([], None), syntax_problem(parameters.query)
    error = problem.message if problem is not None else ""
    issue = await reader.read(GetIssue(issue_id))
    warnings: list[KeyWarning] = []
    try:
        if not error:
            events, warnings = await asyncio.gather(
                reader.read(
                    ListIssueEvents(
                        issue_id,
                        with_person(request, parameters.query),
                        **time_range.bounds,
                        limit=PAGE_SIZE,
                        cursor=parameters.cursor,
                    )
                ),
                query_warnings.of_project(state, int(issue.project_id), parameters.query),
            )
    except (BadQuery, QueryTooExpensive) as failure:
        error = str(failure)
    return page(
        request,
        "event_list.html",
        400 if error else 200,
        project=find_project(state, issue.project_id),
        active="issues",
        issue=issue,
        parameters=parameters,
        events=events,
        error=error,
        problem=problem,
        unknown_keys=unknown_keys(parameters, warnings),
        durations=DURATIONS,
    )
