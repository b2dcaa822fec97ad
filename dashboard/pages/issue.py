"""An issue with one of its events."""

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from dashboard.api.operation import find_project
from dashboard.dependencies import State, state_of
from dashboard.http.errors import not_found
from dashboard.http.inputs import read_event, read_issue
from dashboard.pages.render import page
from dashboard.view.activity import describe
from dashboard.view.event import EventSections, read
from dashboard.view.filters import tag_query
from dashboard.view.series import events_chart
from storage.errors import DamagedPayload, NotFound
from storage.reader.answers import EventDetail
from storage.reader.count_calls import GetIssueStats
from storage.reader.event_detail import GetIssueEvent
from storage.reader.issue_calls import GetIssue, ListActivity
from storage.reader.similar import ListSimilarIssues
from storage.reader.tag_calls import CountIssueTags

LISTED_CHANGES = 20
LISTED_SIMILAR = 5


async def show(request: web.Request) -> web.Response:
    """The issue, and its latest event or the one that the address names."""
    state = state_of(request)
    issue_id = read_issue(request.match_info["issue"])
    wanted = read_event(request.match_info.get("event", "latest"))
    reader = state.parts.reader
    issue, (detail, is_damaged), facets, series, changes, similar = await asyncio.gather(
        reader.read(GetIssue(issue_id)),
        _event(state, issue_id, wanted),
        reader.read(CountIssueTags(issue_id)),
        reader.read(GetIssueStats(issue_id)),
        reader.read(ListActivity(issue_id, limit=LISTED_CHANGES)),
        reader.read(ListSimilarIssues(issue_id, limit=LISTED_SIMILAR)),
    )
    project = find_project(state, issue.project_id)
    return page(
        request,
        "issue.html",
        project=project,
        active="issues",
        issue=issue,
        detail=detail,
        event=_read(detail) if detail is not None else None,
        facets=facets,
        figure=events_chart(series),
        changes=[describe(change, issue.id) for change in changes.activity],
        tag_query=tag_query,
        similar=similar.similar,
        can_change=state.parts.changes is not None,
        is_damaged=is_damaged,
        is_discarded=set(issue.fingerprints) <= set(project.discarded),
    )


async def _event(state: State, issue: str, wanted: str) -> tuple[EventDetail | None, bool]:
    """The event, None where the issue's events are past their retention; and whether its content is damaged."""
    try:
        return await state.parts.reader.read(GetIssueEvent(issue, wanted)), False
    except DamagedPayload as error:
        state.metrics.damaged_payloads.inc()
        return error.detail, True
    except NotFound:
        if wanted != "latest":
            raise not_found("there is no such event in this issue, or it is past its retention") from None
        return None, False


def _read(detail: EventDetail) -> EventSections | None:
    """None where the payload's own retention has passed, or it can't be read."""
    if detail.event is None:
        return None
    try:
        decoded: Any = msgspec.json.decode(detail.event)
    except (msgspec.DecodeError, RecursionError):
        return None
    return read(decoded, detail.sdk, detail.time) if isinstance(decoded, dict) else None
