"""Lists of events, newest first, and samples of complete events."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from schemas.ids import hex64
from schemas.read_api import EventPage, Sample
from schemas.times import DAY_MS, HOUR_MS
from storage.errors import BadQuery
from storage.read.events.event_rows import (
    EVENT_COLUMNS,
    StoredEvent,
    before_or_after,
    issue_of,
    readable,
    to_event_row,
)
from storage.read.events.payloads import stored_payloads
from storage.read.execute import Rows, Sql
from storage.read.issue_rows import IssueRow, issues_of
from storage.read.query.cursors import EventCursor, read_cursor, write_cursor
from storage.read.query.question import Question
from storage.read.query.ranges import Range
from storage.read.reader import IssueCall, ProjectCall, Session, check_limit

MAX_SAMPLE: Final = 2_000
MAX_BYTES: Final = 32 * 1024 * 1024
"""Limit of the events of one sample together; a single event may have a megabyte."""
_BATCH: Final = 100
_PROJECT_WINDOWS: Final[tuple[int, ...]] = (6 * HOUR_MS, 3 * DAY_MS)
_WINDOW_PAGES: Final = 3


class ListIssueEvents(IssueCall[EventPage], frozen=True):
    """A page of an issue's events, newest first; by default of all stored events."""

    limit: int = 50
    cursor: str | None = None

    async def fetch(self, session: Session) -> EventPage:
        row = await session.issue(self.issue)
        question = self.question_ever(session, row.project_id)
        return await _page(session, question, row, self.limit, self.cursor)


class ListProjectEvents(ProjectCall[EventPage], frozen=True):
    """A page of a project's events, newest first."""

    limit: int = 50
    cursor: str | None = None

    async def fetch(self, session: Session) -> EventPage:
        return await _page(session, self.question(session), None, self.limit, self.cursor)


class SampleEvents(ProjectCall[list[Sample]], frozen=True):
    """The newest events in range and query that have a readable payload.

    They are fewer than the limit if they are large.
    """

    limit: int = 500
    max_bytes: int = MAX_BYTES

    async def fetch(self, session: Session) -> list[Sample]:
        """The complete events, newest first."""
        if not 1 <= self.limit <= MAX_SAMPLE:
            raise BadQuery("limit", f"a number from 1 to {MAX_SAMPLE}")
        question = self.question(session)
        rows = await _newest(session, question, None, self.limit, None)
        events = [StoredEvent(*row) for row in rows[: self.limit]]
        issues = await _issues_of_events(session, question, events)
        samples: list[Sample] = []
        remaining = self.max_bytes
        # In batches: other calls run in between, and reading stops at the limit.
        for first in range(0, len(events), _BATCH):
            batch = events[first : first + _BATCH]
            payloads = await stored_payloads(session, question, [event.id for event in batch])
            for event in batch:
                sent = readable(event.id, payloads[event.id]) if event.id in payloads else None
                if sent is None:
                    continue
                remaining -= memoryview(sent).nbytes
                if remaining < 0:
                    return samples
                samples.append(
                    Sample(
                        event=sent,
                        issue_id=hex64(issue_of(self.project, event.fingerprint, issues)),
                        fingerprint=hex64(event.fingerprint),
                        sdk=event.sdk,
                        received_ms=event.received,
                    )
                )
        return samples


async def _page(
    session: Session, question: Question, issue: IssueRow | None, limit: int, cursor: str | None
) -> EventPage:
    check_limit(limit)
    last = read_cursor(cursor, EventCursor)
    if last is not None:
        question = replace(question, span=Range(last.start, last.end), now_ms=last.now_ms)
    rows = await _newest(session, question, issue, limit, last)
    events = [StoredEvent(*row) for row in rows[:limit]]
    if issue is None:
        issues = await _issues_of_events(session, question, events)
    else:
        issues = dict.fromkeys(issue.fingerprints, issue.issue_id)
    next_cursor = None
    if len(rows) > limit:
        span, end = question.span, events[-1]
        next_cursor = write_cursor(
            EventCursor(span.start, span.end, question.now_ms, end.time, f"{end.id:032x}")
        )
    return EventPage(events=[to_event_row(event, issues) for event in events], next_cursor=next_cursor)


async def _newest(
    session: Session,
    question: Question,
    issue: IssueRow | None,
    limit: int,
    last: EventCursor | None,
) -> Rows:
    """Rows of a page of an issue or of the project, up to one more than the limit."""
    fingerprints = None if issue is None else issue.fingerprints
    rows: Rows = ()
    for span in _windows(question, last, issue, limit):
        rows = await session.rows(_statement(replace(question, span=span), fingerprints, limit, last))
        if len(rows) > limit:
            break
    return rows


async def _issues_of_events(
    session: Session, question: Question, events: Sequence[StoredEvent]
) -> dict[int, int]:
    """The known issues of the events, by fingerprint."""
    fingerprints = sorted({event.fingerprint for event in events})
    return dict(await session.rows(issues_of(question, fingerprints))) if fingerprints else {}


def _statement(
    question: Question, fingerprints: Sequence[int] | None, limit: int, cursor: EventCursor | None
) -> Sql:
    """`EVENT_COLUMNS` of the newest events in range and query, up to one more than the limit.

    `fingerprints` None means all.
    """
    statement = question.statement()
    conditions = [statement.project, statement.within("ts", question.span), statement.whole]
    if fingerprints is not None:
        conditions.append(statement.of_fingerprints(fingerprints))
    if cursor is not None:
        conditions.append(before_or_after(statement, "<", cursor.time, int(cursor.event, 16)))
    return statement.ready(
        f"SELECT {EVENT_COLUMNS} FROM events WHERE {' AND '.join(conditions)}"
        f" ORDER BY ts DESC, id DESC LIMIT {limit + 1:d}"
    )


def _windows(
    question: Question, cursor: EventCursor | None, issue: IssueRow | None, limit: int
) -> Iterator[Range]:
    """Newest parts of the range, growing, and then the whole range.

    A project's events are not stored in the order of time, and an issue's are spread over many parts: the
    newest are cheap to find only in a short range. For an issue the window is expected to contain a page.
    """
    span = question.span
    newest = question.now_ms if span.end is None else span.end
    lengths = _PROJECT_WINDOWS
    if issue is not None:
        newest = min(newest, issue.last_seen)
        lengths = (max(HOUR_MS, _WINDOW_PAGES * limit * issue.gap),)
    if cursor is not None:
        newest = cursor.time
    for length in lengths:
        if newest - length > span.start:
            yield Range(newest - length, span.end)
    yield span
