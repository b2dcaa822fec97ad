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
from storage.errors import BadQuery
from storage.reader import activity as changes
from storage.reader import figures, issue_list
from storage.reader.answers import ActivityPage, ActivityRow, Issue, IssuePage, Sort
from storage.reader.cursors import ActivityCursor, IssueCursor, first_cursor, read_cursor, write_cursor
from storage.reader.execute import Rows
from storage.reader.identifiers import page_limit
from storage.reader.issue_rows import IssueRow, RangeCounts, answer, fits, read_row
from storage.reader.port import IssueCall, ProjectCall, ReadCall
from storage.reader.question import Question
from storage.reader.ranges import Range
from storage.reader.session import Session
from storage.reader.trend import trend_counts

SORTS = ("lastSeen", "firstSeen", "events", "users", "trend")

Keyed = tuple[int, IssueRow]
Page = tuple[list[Keyed], Mapping[int, RangeCounts]]


class ListIssues(ProjectCall[IssuePage], frozen=True):
    """A page of the issues that have an event in range and query."""

    sort: Sort = "lastSeen"
    limit: int = 50
    cursor: str | None = None

    async def answer(self, session: Session) -> IssuePage:
        """The page."""
        page_limit(self.limit)
        if self.sort not in SORTS:
            raise BadQuery("sort", f"one of {', '.join(SORTS)}")
        question = self.question(session)
        last = read_cursor(self.cursor, IssueCursor)
        if last is not None:
            if last.sort != self.sort:
                raise BadQuery("cursor", "a nextCursor of the same list")
            # Later pages are cut from the same range as the first, whatever the time is now.
            question = replace(question, span=Range(last.start, last.end), now_ms=last.now_ms)
        rows, counts = await _page(session, question, self.sort, self.limit, last)
        page = rows[: self.limit]
        return IssuePage(
            # An issue can be known a moment before the block with its first events is.
            issues=[answer(row, counts[row.issue_id]) for _, row in page if counts[row.issue_id].events],
            next_cursor=(
                write_cursor(_cursor(question, self.sort, page, last)) if len(rows) > self.limit else None
            ),
        )


class GetIssue(IssueCall[Issue], frozen=True):
    """One issue, counted in range and query. Of a merged one: the issue that has its events now."""

    async def answer(self, session: Session) -> Issue:
        """The issue; counts are 0 where it isn't what the query asks of issues."""
        row = await session.issue(self.issue)
        question = self.question(session, row.project_id)
        wanted = fits(row, question.of_issue, question.now_ms)
        counts = await _counted(session, question, {row.issue_id: row.fingerprints} if wanted else {})
        return answer(row, counts[row.issue_id])


class GetIssueRow(ReadCall[IssueRow], frozen=True):
    """What is stored of an issue, or of the one that it was merged into."""

    issue: str

    async def answer(self, session: Session) -> IssueRow:
        """The row."""
        return await session.issue(self.issue)


class FindProject(ReadCall[int], frozen=True):
    """The project of an issue."""

    issue: str

    async def answer(self, session: Session) -> int:
        """The project's number."""
        return (await session.issue_ref(self.issue)).project_id


class CountIssues(ReadCall[list[Issue]], frozen=True):
    """Issues of a project whose rows are known, counted in the last 14 days."""

    project: int
    rows: Sequence[IssueRow]

    async def answer(self, session: Session) -> list[Issue]:
        """The issues in the order of their rows."""
        question = session.question(self.project, "", None, None)
        counts = await _counted(session, question, {row.issue_id: row.fingerprints for row in self.rows})
        return [answer(row, counts[row.issue_id]) for row in self.rows]


class ListActivity(ReadCall[ActivityPage], frozen=True):
    """A page of the changes of an issue and of those merged into it, newest first."""

    issue: str
    limit: int = 50
    cursor: str | None = None

    async def answer(self, session: Session) -> ActivityPage:
        """The page."""
        page_limit(self.limit)
        last = read_cursor(self.cursor, ActivityCursor)
        issue_ref = await session.issue_ref(self.issue)
        question = session.question_ever(issue_ref.project_id, "", None, None)
        # Each fingerprint has opened an issue, whose changes stay its own: merging rewrites nothing.
        parts = {
            issue_ref.issue_id,
            *(opened_by(issue_ref.project_id, one) for one in issue_ref.fingerprints),
        }
        rows = await session.rows(changes.page(question, sorted(parts), self.limit, last))
        page = [
            ActivityRow(
                id=change, kind=kind, by=by, at=iso(at), data=Raw(data.encode() or b"{}"), issue_id=hex64(of)
            )
            for change, kind, by, at, data, of in rows[: self.limit]
        ]
        next_cursor = None
        if len(rows) > self.limit:
            change, _, _, at, *_ = rows[self.limit - 1]
            next_cursor = write_cursor(ActivityCursor(int(at), change))
        return ActivityPage(activity=page, next_cursor=next_cursor)


async def _page(
    session: Session, question: Question, sort: Sort, limit: int, last: IssueCursor | None
) -> Page:
    """Sort keys and rows of a page, one more than the limit where there is one, and the figures of each issue."""
    if issue_list.needs_no_count(question, sort):
        rows = await session.rows(issue_list.seen_page(question, sort, limit, last))
        found = [(key, read_row(columns)) for key, *columns in rows]
        return found, await _counted(
            session, question, {row.issue_id: row.fingerprints for _, row in found[:limit]}
        )
    if issue_list.tries_newest(question, sort) and (
        page := await _among_newest(session, question, sort, limit, last)
    ):
        return page
    if issue_list.needs_one_look(question):
        keys = await session.rows(issue_list.page_with_figures(question, sort, limit, last))
        counted = _read_figures(question, [figures for _, *figures in keys])
        return await _rows(session, question, keys), counted
    keys = await session.rows(issue_list.counted_page(question, sort, limit, last))
    return await asyncio.gather(
        _rows(session, question, keys),
        _counted(session, question, {issue: members for _, issue, members in keys[:limit]}),
    )


async def _among_newest(
    session: Session, question: Question, sort: Sort, limit: int, last: IssueCursor | None
) -> Page | None:
    """The page, if enough of the first issues in the order have an event in range and query."""
    many = max(issue_list.NEWEST, 2 * limit)
    rows = await session.rows(issue_list.seen_page(question, sort, many, last))
    found = [(key, read_row(columns)) for key, *columns in rows]
    counted = await _counted(session, question, {row.issue_id: row.fingerprints for _, row in found})
    having = [(key, row) for key, row in found if counted[row.issue_id].events]
    if len(having) <= limit and len(found) > many:
        return None
    return having[: limit + 1], counted


async def _rows(session: Session, question: Question, keys: Rows) -> list[Keyed]:
    """The rows of issues that were found, with their keys."""
    if not keys:
        return []
    rows = await session.rows(issue_list.rows_by_id(question, [issue for _, issue, *_ in keys]))
    by_id = {row.issue_id: row for row in map(read_row, rows)}
    # An issue that changed between the two statements so that it no longer fits is left out.
    return [(key, by_id[issue]) for key, issue, *_ in keys if issue in by_id]


async def _counted(
    session: Session, question: Question, members: Mapping[int, Sequence[int]]
) -> Mapping[int, RangeCounts]:
    """What range and query count of each issue, given by its fingerprints."""
    return _read_figures(
        question, await session.rows(figures.of_issues(question, members)) if members else ()
    )


def _read_figures(question: Question, rows: Sequence[Sequence[Any]]) -> Mapping[int, RangeCounts]:
    counted: dict[int, RangeCounts] = defaultdict(
        lambda: RangeCounts(trend=tuple(trend_counts({}, question.span, question.now_ms)))
    )
    for issue, events, users, buckets in rows:
        trend: Counter[int] = Counter()
        for bucket, many in buckets:
            trend[bucket] += many
        counted[issue] = RangeCounts(
            events, users, tuple(trend_counts(trend, question.span, question.now_ms))
        )
    return counted


def _cursor(question: Question, sort: Sort, shown: Sequence[Keyed], last: IssueCursor | None) -> IssueCursor:
    key, issues = shown[-1][0], [row.issue_id for _, row in shown]
    if last is None:
        return first_cursor(sort, question.span, question.now_ms, key, issues)
    return last.after(key, issues)
