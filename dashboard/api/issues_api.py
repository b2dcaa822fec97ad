"""Issues of a project, an issue, and its activity."""

import asyncio

import msgspec

from dashboard.api.operation import Call, NoInput, Operation
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


async def _list(call: Call[IssueQuery, NoInput]) -> IssuePage:
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


async def _get(call: Call[RangeQuery, NoInput]) -> CountedIssue:
    issue, warnings = await asyncio.gather(
        call.reader.read(GetIssue(call.issue(), call.query.query, **call.query.bounds())), call.warnings()
    )
    return CountedIssue(**msgspec.structs.asdict(issue), warnings=warnings)


async def _activity(call: Call[PageQuery, NoInput]) -> ActivityPage:
    return await call.reader.read(
        ListActivity(call.issue(), limit=call.query.limit, cursor=call.query.cursor)
    )


OPERATIONS = (
    Operation(
        "GET",
        "/projects/{project}/issues",
        "Issues with events in the range that the query matches",
        _list,
        Role.VIEWER,
    ),
    Operation("GET", "/issues/{issue}", "An issue", _get, Role.VIEWER),
    Operation("GET", "/issues/{issue}/activity", "Changes of an issue, newest first", _activity, Role.VIEWER),
)
