"""Issues of a project, one issue, and its changes."""

import asyncio

import msgspec
from msgspec import Struct

from dashboard.api.operation import Call, NoInput, Operation
from dashboard.http.inputs import Cursor, PageQuery, PageSize, Query, Time, read_range
from storage.reader.answers import ActivityPage, CountedIssue, IssuePage, Sort
from storage.reader.issue_calls import GetIssue, ListActivity
from storage.reader.issue_list import ListIssues


class IssueQuery(Struct, frozen=True):
    """Which issues, in which order."""

    query: Query = ""
    start: Time | None = None
    end: Time | None = None
    sort: Sort = "lastSeen"
    limit: PageSize = 50
    cursor: Cursor | None = None


class RangeQuery(Struct, frozen=True):
    """Which of the events count."""

    query: Query = ""
    start: Time | None = None
    end: Time | None = None


async def _list(call: Call[IssueQuery, NoInput]) -> IssuePage:
    asked, range_ = call.query, read_range(call.query.start, call.query.end)
    return await call.warned(
        call.reader.read(
            ListIssues(
                call.project().number,
                asked.query,
                start=range_.start,
                end=range_.end,
                sort=asked.sort,
                limit=asked.limit,
                cursor=asked.cursor,
            )
        )
    )


async def _get(call: Call[RangeQuery, NoInput]) -> CountedIssue:
    range_ = read_range(call.query.start, call.query.end)
    found, warnings = await asyncio.gather(
        call.reader.read(GetIssue(call.issue(), call.query.query, start=range_.start, end=range_.end)),
        call.warnings(),
    )
    return CountedIssue(**msgspec.structs.asdict(found), warnings=warnings)


async def _activity(call: Call[PageQuery, NoInput]) -> ActivityPage:
    return await call.reader.read(
        ListActivity(call.issue(), limit=call.query.limit, cursor=call.query.cursor)
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/projects/{project}/issues",
        summary="Issues with events in the range that the query matches",
        handler=_list,
        query=IssueQuery,
        answer=IssuePage,
        polled=True,
    ),
    Operation(
        method="GET",
        path="/issues/{issue}",
        summary="An issue",
        handler=_get,
        query=RangeQuery,
        answer=CountedIssue,
        polled=True,
    ),
    Operation(
        method="GET",
        path="/issues/{issue}/activity",
        summary="Changes of an issue, newest first",
        handler=_activity,
        query=PageQuery,
        answer=ActivityPage,
        polled=True,
    ),
)
