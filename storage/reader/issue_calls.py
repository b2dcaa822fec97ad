"""Calls about issues: the list, one, and its changes."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from schemas.ids import hex64
from schemas.ids import issue_id as opened_by
from schemas.times import iso
from storage.reader import activity as changes
from storage.reader import figures, issue_list
from storage.reader.answers import ActivityPage, ActivityRow, Issue, IssuePage, Sort
from storage.reader.cursors import ActivityCursor, IssueCursor, first_cursor, read_cursor, write_cursor
from storage.reader.errors import BadQuery
from storage.reader.execute import Rows
from storage.reader.identifiers import page_limit
from storage.reader.issue_rows import IssueRow, RangeCounts, answer, fits, read_row
from storage.reader.question import Question
from storage.reader.ranges import Range
from storage.reader.session import Session
from storage.reader.trend import trend_counts

SORTS = ("lastSeen", "firstSeen", "events", "users", "trend")

Keyed = tuple[int, IssueRow]
Page = tuple[list[Keyed], Mapping[int, RangeCounts]]


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
    found, counted = await _page(session, asked, sort, limit, last)
    shown = found[:limit]
    return IssuePage(
        # An issue can be known a moment before the block with its first events is.
        issues=[answer(row, counted[row.issue_id]) for _, row in shown if counted[row.issue_id].events],
        next_cursor=write_cursor(_cursor(asked, sort, shown, last)) if len(found) > limit else None,
    )


async def issue(session: Session, issue_id: str, query: str, start: int | None, end: int | None) -> Issue:
    """One issue, counted in range and query: nothing where it isn't what the query asks of issues."""
    row = await session.issue(issue_id)
    asked = session.question(row.project_id, query, start, end)
    wanted = fits(row, asked.of_issue, asked.now_ms)
    counted = await _counted(session, asked, {row.issue_id: row.fingerprints} if wanted else {})
    return answer(row, counted[row.issue_id])


async def counted(session: Session, project: int, rows: Sequence[IssueRow]) -> list[Issue]:
    """Issues of a project whose rows are known, counted in the last 14 days."""
    asked = session.question(project, "", None, None)
    found = await _counted(session, asked, {row.issue_id: row.fingerprints for row in rows})
    return [answer(row, found[row.issue_id]) for row in rows]


async def activity(session: Session, issue_id: str, limit: int, cursor: str | None) -> ActivityPage:
    """A page of the changes of an issue and of those merged into it, newest first."""
    page_limit(limit)
    last = read_cursor(cursor, ActivityCursor)
    place = await session.place(issue_id)
    asked = session.question_ever(place.project_id, "", None, None)
    # Each fingerprint has opened an issue, whose changes stay its own: merging rewrites nothing.
    parts = {place.issue_id, *(opened_by(place.project_id, one) for one in place.fingerprints)}
    found = await session.rows(changes.page(asked, sorted(parts), limit, last))
    shown = [
        ActivityRow(
            id=change, kind=kind, by=by, at=iso(at), data=Raw(data.encode() or b"{}"), issue_id=hex64(of)
        )
        for change, kind, by, at, data, of in found[:limit]
    ]
    next_cursor = None
    if len(found) > limit:
        change, _, _, at, *_ = found[limit - 1]
        next_cursor = write_cursor(ActivityCursor(int(at), change))
    return ActivityPage(activity=shown, next_cursor=next_cursor)


async def _page(session: Session, asked: Question, sort: Sort, limit: int, last: IssueCursor | None) -> Page:
    """Sort keys and rows of a page, one more than the limit where there is one, and the figures of each issue."""
    if issue_list.needs_no_count(asked, sort):
        rows = await session.rows(issue_list.seen_page(asked, sort, limit, last))
        found = [(key, read_row(columns)) for key, *columns in rows]
        return found, await _counted(
            session, asked, {row.issue_id: row.fingerprints for _, row in found[:limit]}
        )
    if issue_list.tries_newest(asked, sort) and (
        page := await _among_newest(session, asked, sort, limit, last)
    ):
        return page
    if issue_list.needs_one_look(asked):
        keys = await session.rows(issue_list.page_with_figures(asked, sort, limit, last))
        counted = _read_figures(asked, [figures for _, *figures in keys])
        return await _rows(session, asked, keys), counted
    keys = await session.rows(issue_list.counted_page(asked, sort, limit, last))
    return await asyncio.gather(
        _rows(session, asked, keys),
        _counted(session, asked, {issue: members for _, issue, members in keys[:limit]}),
    )


async def _among_newest(
    session: Session, asked: Question, sort: Sort, limit: int, last: IssueCursor | None
) -> Page | None:
    """The page, if enough of the first issues in the order have an event in range and query."""
    many = max(issue_list.NEWEST, 2 * limit)
    rows = await session.rows(issue_list.seen_page(asked, sort, many, last))
    found = [(key, read_row(columns)) for key, *columns in rows]
    counted = await _counted(session, asked, {row.issue_id: row.fingerprints for _, row in found})
    having = [(key, row) for key, row in found if counted[row.issue_id].events]
    if len(having) <= limit and len(found) > many:
        return None
    return having[: limit + 1], counted


async def _rows(session: Session, asked: Question, keys: Rows) -> list[Keyed]:
    """The rows of issues that were found, with their keys."""
    if not keys:
        return []
    rows = await session.rows(issue_list.rows_by_id(asked, [issue for _, issue, *_ in keys]))
    by_id = {row.issue_id: row for row in map(read_row, rows)}
    # An issue that changed between the two statements so that it no longer fits is left out.
    return [(key, by_id[issue]) for key, issue, *_ in keys if issue in by_id]


async def _counted(
    session: Session, asked: Question, members: Mapping[int, Sequence[int]]
) -> Mapping[int, RangeCounts]:
    """What range and query count of each issue, given by its fingerprints."""
    return _read_figures(asked, await session.rows(figures.of_issues(asked, members)) if members else ())


def _read_figures(asked: Question, rows: Sequence[Sequence[Any]]) -> Mapping[int, RangeCounts]:
    counted: dict[int, RangeCounts] = defaultdict(
        lambda: RangeCounts(trend=tuple(trend_counts({}, asked.span, asked.now_ms)))
    )
    for issue, events, users, buckets in rows:
        trend: Counter[int] = Counter()
        for bucket, many in buckets:
            trend[bucket] += many
        counted[issue] = RangeCounts(events, users, tuple(trend_counts(trend, asked.span, asked.now_ms)))
    return counted


def _cursor(asked: Question, sort: Sort, shown: Sequence[Keyed], last: IssueCursor | None) -> IssueCursor:
    key, issues = shown[-1][0], [row.issue_id for _, row in shown]
    if last is None:
        return first_cursor(sort, asked.span, asked.now_ms, key, issues)
    return last.after(key, issues)
