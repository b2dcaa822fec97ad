"""Events of an issue or a project: lists and details."""

from msgspec import Struct

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.inputs import Cursor, PageSize, Query, RangeQuery
from schemas.errors import WireError
from schemas.read_api import EventDetail, EventPage
from storage.read.events.event_calls import ListIssueEvents, ListProjectEvents
from storage.read.events.event_detail import GetIssueEvent, GetProjectEvent


class MatchQuery(Struct, frozen=True):
    """Among which events of the issue `latest`, `oldest` and the neighbours are."""

    query: Query = ""


class EventQuery(RangeQuery, frozen=True):
    """A page of events, newest first."""

    limit: PageSize = 50
    cursor: Cursor | None = None


@operation("GET", "/issues/{issue}/events", Role.VIEWER)
async def _of_issue(call: Call[EventQuery, NoInput]) -> EventPage:
    """Events of an issue, newest first."""
    query = call.query
    return await call.read_with_warnings(
        ListIssueEvents(call.issue(), query.query, **query.bounds(), limit=query.limit, cursor=query.cursor)
    )


@operation("GET", "/projects/{project}/events", Role.VIEWER)
async def _of_project(call: Call[EventQuery, NoInput]) -> EventPage:
    """Events of a project, newest first."""
    query = call.query
    return await call.read_with_warnings(
        ListProjectEvents(
            call.project().number, query.query, **query.bounds(), limit=query.limit, cursor=query.cursor
        )
    )


@operation("GET", "/issues/{issue}/events/{event}", Role.VIEWER, errors=(WireError.DAMAGED,))
async def _get_of_issue(call: Call[MatchQuery, NoInput]) -> EventDetail:
    """An event of an issue, as it was sent."""
    detail = await call.reader.read(GetIssueEvent(call.issue(), call.event(), call.query.query))
    return await call.state.resolver.with_source(detail)


@operation("GET", "/projects/{project}/events/{event}", Role.VIEWER, errors=(WireError.DAMAGED,))
async def _get_of_project(call: Call[NoInput, NoInput]) -> EventDetail:
    """An event of a project, as it was sent."""
    detail = await call.reader.read(GetProjectEvent(call.project().number, call.event()))
    return await call.state.resolver.with_source(detail)


OPERATIONS = (_of_issue, _get_of_issue, _of_project, _get_of_project)
