"""Events of an issue and of a project, as lists and one by one."""

from msgspec import Struct

from dashboard.api.operation import Call, NoInput, Operation
from dashboard.http.inputs import Cursor, PageSize, Query, Time, read_range
from schemas.errors import WireError
from storage.reader.answers import EventDetail, EventPage
from storage.reader.event_calls import ListIssueEvents, ListProjectEvents
from storage.reader.event_detail import GetIssueEvent, GetProjectEvent


class EventQuery(Struct, frozen=True):
    """Which events, newest first."""

    query: Query = ""
    start: Time | None = None
    end: Time | None = None
    limit: PageSize = 50
    cursor: Cursor | None = None


async def _of_issue(call: Call[EventQuery, NoInput]) -> EventPage:
    asked, range_ = call.query, read_range(call.query.start, call.query.end)
    return await call.warned(
        call.reader.read(
            ListIssueEvents(
                call.issue(),
                asked.query,
                start=range_.start,
                end=range_.end,
                limit=asked.limit,
                cursor=asked.cursor,
            )
        )
    )


async def _of_project(call: Call[EventQuery, NoInput]) -> EventPage:
    asked, range_ = call.query, read_range(call.query.start, call.query.end)
    return await call.warned(
        call.reader.read(
            ListProjectEvents(
                call.project().number,
                asked.query,
                start=range_.start,
                end=range_.end,
                limit=asked.limit,
                cursor=asked.cursor,
            )
        )
    )


async def _one_of_issue(call: Call[NoInput, NoInput]) -> EventDetail:
    return await call.reader.read(GetIssueEvent(call.issue(), call.event()))


async def _one_of_project(call: Call[NoInput, NoInput]) -> EventDetail:
    return await call.reader.read(GetProjectEvent(call.project().number, call.event()))


OPERATIONS = (
    Operation(
        method="GET",
        path="/issues/{issue}/events",
        summary="Events of an issue, newest first",
        handler=_of_issue,
        query=EventQuery,
        answer=EventPage,
        polled=True,
    ),
    Operation(
        method="GET",
        path="/issues/{issue}/events/{event}",
        summary="An event of an issue, as it was sent",
        handler=_one_of_issue,
        answer=EventDetail,
        errors=(WireError.DAMAGED,),
    ),
    Operation(
        method="GET",
        path="/projects/{project}/events",
        summary="Events of a project, newest first",
        handler=_of_project,
        query=EventQuery,
        answer=EventPage,
        polled=True,
    ),
    Operation(
        method="GET",
        path="/projects/{project}/events/{event}",
        summary="An event of a project, as it was sent",
        handler=_one_of_project,
        answer=EventDetail,
        errors=(WireError.DAMAGED,),
    ),
)
