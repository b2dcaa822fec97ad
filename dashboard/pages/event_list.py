"""The events of an issue."""

import asyncio

from aiohttp import web

from dashboard import query_warnings
from dashboard.api.operation import find_project
from dashboard.dependencies import state_of
from dashboard.http.inputs import read_issue
from dashboard.pages.list_parameters import doubts_of, query_fault, read_parameters
from dashboard.pages.render import page
from dashboard.pages.time_ranges import LENGTHS
from storage.errors import BadQuery, QueryTooExpensive
from storage.reader.answers import EventPage, KeyWarning
from storage.reader.event_calls import ListIssueEvents
from storage.reader.issue_calls import GetIssue

PAGE = 50


async def show(request: web.Request) -> web.Response:
    """Events that the address asks for, newest first."""
    state = state_of(request)
    issue_id = read_issue(request.match_info["issue"])
    asked = read_parameters(request, state.parts.now_ms())
    reader, span = state.parts.reader, asked.span
    found, fault = EventPage([], None), query_fault(asked.query)
    wrong = fault.words if fault is not None else ""
    issue = await reader.read(GetIssue(issue_id))
    warnings: list[KeyWarning] = []
    try:
        if not wrong:
            found, warnings = await asyncio.gather(
                reader.read(
                    ListIssueEvents(
                        issue_id, asked.query, start=span.start, end=span.end, limit=PAGE, cursor=asked.cursor
                    )
                ),
                query_warnings.of_project(state, int(issue.project_id), asked.query),
            )
    except (BadQuery, QueryTooExpensive) as error:
        wrong = str(error)
    return page(
        request,
        "event_list.html",
        400 if wrong else 200,
        project=find_project(state, issue.project_id),
        active="issues",
        issue=issue,
        asked=asked,
        found=found,
        wrong=wrong,
        fault=fault,
        doubts=doubts_of(asked, warnings),
        lengths=LENGTHS,
    )
