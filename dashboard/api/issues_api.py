"""Issues of a project, an issue, and its activity."""

import asyncio

import msgspec

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.inputs import Cursor, PageQuery, PageSize, RangeQuery
from schemas.read_api import ActivityPage, CountedIssue, IssuePage, Sort
from storage.read.issues.issue_calls import GetIssue, ListActivity
from storage.read.issues.issue_list import ListIssues


class IssueQuery(RangeQuery, frozen=True):
    """A page of issues."""

    sort: Sort = "lastSeen"
    limit: PageSize = 50
    cursor: Cursor | None = None


@operation("GET", "/projects/{project}/issues", Role.VIEWER)
async def _list(call: Call[IssueQuery, NoInput]) -> IssuePage:
    """Issues with events in the range that the query matches."""
    query = call.query
    return await call.read_with_warnings(
        ListIssues(
            call.project().number,
            query.query,
            **query.bounds(),
            sort=query.sort,
            limit=query.limit,
            cursor=query.cursor,
        )
    )


@operation("GET", "/issues/{issue}", Role.VIEWER)
async def _get(call: Call[RangeQuery, NoInput]) -> CountedIssue:
    """An issue."""
    issue, warnings = await asyncio.gather(
        call.reader.read(GetIssue(call.issue(), call.query.query, **call.query.bounds())), call.warnings()
    )
    return CountedIssue(**msgspec.structs.asdict(issue), warnings=warnings)


@operation("GET", "/issues/{issue}/activity", Role.VIEWER)
async def _activity(call: Call[PageQuery, NoInput]) -> ActivityPage:
    """Changes of an issue, newest first."""
    return await call.reader.read(
        ListActivity(call.issue(), limit=call.query.limit, cursor=call.query.cursor)
    )


OPERATIONS = (_list, _get, _activity)
