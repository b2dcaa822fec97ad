"""An issue and one of its events."""

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from dashboard.dependencies import State, state_of
from dashboard.http.http_errors import not_found
from dashboard.http.inputs import read_event, read_issue
from dashboard.pages.render import page
from dashboard.projects import find_project
from dashboard.view.activity import describe
from dashboard.view.charts import events_chart
from dashboard.view.event import EventSections, read
from dashboard.view.filters import tag_query
from storage.answers import EventDetail
from storage.errors import DamagedPayload, NotFound
from storage.reader.count_calls import GetIssueStats
from storage.reader.event_detail import GetIssueEvent
from storage.reader.issue_calls import GetIssue, ListActivity
from storage.reader.similar import ListSimilarIssues
from storage.reader.tag_calls import CountIssueTags

MAX_CHANGES = 20
MAX_SIMILAR = 5


async def show(request: web.Request) -> web.Response:
    """The issue with its latest event, or the event in the path."""
    state = state_of(request)
    issue_id = read_issue(request.match_info["issue"])
    event_id = read_event(request.match_info.get("event", "latest"))
    reader = state.dependencies.reader
    issue, (detail, is_damaged), facets, series, changes, similar = await asyncio.gather(
        reader.read(GetIssue(issue_id)),
        _event(state, issue_id, event_id),
        reader.read(CountIssueTags(issue_id)),
        reader.read(GetIssueStats(issue_id)),
        reader.read(ListActivity(issue_id, limit=MAX_CHANGES)),
        reader.read(ListSimilarIssues(issue_id, limit=MAX_SIMILAR)),
    )
    project = find_project(state, issue.project_id)
    return page(
        request,
        "issue.html",
        project=project,
        active="issues",
        issue=issue,
        detail=detail,
        event=_sections(detail) if detail is not None else None,
        facets=facets,
        figure=events_chart(series),
        changes=[describe(change, issue.id) for change in changes.activity],
        tag_query=tag_query,
        similar=similar.similar,
        can_change=state.dependencies.changes is not None,
        is_pending="pending" in request.query,
        is_damaged=is_damaged,
        is_discarded=set(issue.fingerprints) <= set(project.discarded),
    )


async def _event(state: State, issue: str, event: str) -> tuple[EventDetail | None, bool]:
    """The event and whether its payload is damaged; no event if all events of the issue have expired."""
    try:
        return await state.dependencies.reader.read(GetIssueEvent(issue, event)), False
    except DamagedPayload as error:
        state.metrics.damaged_payloads.inc()
        return error.detail, True
    except NotFound:
        if event != "latest":
            raise not_found("this issue has no such event, or the event has expired") from None
        return None, False


def _sections(detail: EventDetail) -> EventSections | None:
    """The event's sections; None if its payload has expired or can't be decoded."""
    if detail.event is None:
        return None
    try:
        decoded: Any = msgspec.json.decode(detail.event)
    except (msgspec.DecodeError, RecursionError):
        return None
    return read(decoded, detail.sdk, detail.time) if isinstance(decoded, dict) else None
