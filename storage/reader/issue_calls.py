"""Calls about issues: the list, one, and its changes."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Raw
from msgspec.structs import replace

from schemas.times import iso
from storage.reader import activity as changes
from storage.reader import issue_list
from storage.reader.answers import ActivityPage, ActivityRow, Issue, IssuePage, Sort
from storage.reader.cursors import ActivityCursor, IssueCursor, first_cursor, read_cursor, write_cursor
from storage.reader.errors import BadQuery
from storage.reader.identifiers import page_limit
from storage.reader.issue_rows import Counted, IssueRow, answer, read_row
from storage.reader.question import Question
from storage.reader.ranges import Range
from storage.reader.session import Session
from storage.reader.trend import trend_counts

SORTS = ("lastSeen", "firstSeen", "events", "users", "trend")

Keyed = tuple[int, IssueRow]


async def issues(
    session: Session,
    project: int,
    query: str,
    start: int | None,
    end: int | None,
    sort: Sort,
    limit: int,
    cursor: str | None,
) -> IssuePage:
    """A page of the issues that have an event in range and query."""
    page_limit(limit)
    if sort not in SORTS:
        raise BadQuery("sort", f"one of {', '.join(SORTS)}")
    asked = session.question(project, query, start, end)
    last = read_cursor(cursor, IssueCursor)
    if last is not None:
        if last.sort != sort:
            raise BadQuery("cursor", "a nextCursor of the same list")
        # Later pages are cut from the same range as the first, whatever the time is now.
        asked = replace(asked, span=Range(last.start, last.end), now_ms=last.now_ms)
    found = await _page(session, asked, sort, limit, last)
    shown = found[:limit]
    counted = await _counted(session, asked, [row for _, row in shown])
    return IssuePage(
        # An issue can be known a moment before the block with its first events is.
        issues=[answer(row, counted[row.issue_id]) for _, row in shown if counted[row.issue_id].events],
        next_cursor=write_cursor(_cursor(asked, sort, shown, last)) if len(found) > limit else None,
    )


async def issue(session: Session, issue_id: str, query: str, start: int | None, end: int | None) -> Issue:
    """One issue, counted in range and query."""
    row = await session.issue(issue_id)
    asked = session.question(row.project_id, query, start, end)
    counted = await _counted(session, asked, [row])
    return answer(row, counted[row.issue_id])


async def activity(session: Session, issue_id: str, limit: int, cursor: str | None) -> ActivityPage:
    """A page of an issue's changes, newest first."""
    page_limit(limit)
    last = read_cursor(cursor, ActivityCursor)
    row = await session.issue(issue_id)
    asked = session.question_ever(row.project_id, "", None, None)
    found = await session.rows(changes.page(asked, row.issue_id, limit, last))
    shown = [
        (int(at), ActivityRow(id=change, kind=kind, by=by, at=iso(at), data=Raw(data.encode() or b"{}")))
        for change, kind, by, at, data in found[:limit]
    ]
    more = len(found) > limit
    return ActivityPage(
        activity=[change for _, change in shown],
        next_cursor=write_cursor(ActivityCursor(shown[-1][0], shown[-1][1].id)) if more else None,
    )


async def _page(
    session: Session, asked: Question, sort: Sort, limit: int, last: IssueCursor | None
) -> list[Keyed]:
    """Sort keys and rows of a page, one more than the limit where there is one."""
    if issue_list.needs_no_count(asked, sort):
        rows = await session.rows(issue_list.seen_page(asked, sort, limit, last))
        return [(key, read_row(columns)) for key, *columns in rows]
    keys = await session.rows(issue_list.counted_page(asked, sort, limit, last))
    if not keys:
        return []
    rows = await session.rows(issue_list.rows_by_id(asked, [issue for _, issue in keys]))
    by_id = {row.issue_id: row for row in map(read_row, rows)}
    # An issue that changed between the two statements so that it no longer fits is left out.
    return [(key, by_id[issue]) for key, issue in keys if issue in by_id]


async def _counted(session: Session, asked: Question, rows: Sequence[IssueRow]) -> dict[int, Counted]:
    """What range and query count of each row."""
    if not rows:
        return {}
    trends: dict[int, dict[int, int]] = defaultdict(dict)
    figures: dict[int, tuple[int, int]] = {}
    if asked.level == "events":
        for number, events, users, buckets in await session.rows(issue_list.page_figures(asked, rows)):
            figures[number], trends[number] = (events, users), dict(buckets)
    else:
        counts, trend_rows = await asyncio.gather(
            session.rows(issue_list.page_counts(asked, rows)),
            session.rows(issue_list.page_trends(asked, rows)),
        )
        figures = {number: (events, users) for number, events, users in counts}
        for number, bucket, events in trend_rows:
            trends[number][bucket] = events
    return {
        row.issue_id: Counted(
            *figures.get(row.issue_id, (0, 0)),
            trend=tuple(trend_counts(trends[row.issue_id], asked.span, asked.now_ms)),
        )
        for row in rows
    }


def _cursor(asked: Question, sort: Sort, shown: Sequence[Keyed], last: IssueCursor | None) -> IssueCursor:
    key, issues = shown[-1][0], [row.issue_id for _, row in shown]
    if last is None:
        return first_cursor(sort, asked.span, asked.now_ms, key, issues)
    return last.after(key, issues)
