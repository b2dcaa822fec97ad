"""Pages of events, newest first."""

from collections.abc import Sequence

from msgspec.structs import replace

from storage.reader import event_list
from storage.reader.answers import EventPage
from storage.reader.cursors import EventCursor, read_cursor, write_cursor
from storage.reader.event_rows import StoredEvent, answer, read_event
from storage.reader.execute import Rows
from storage.reader.identifiers import page_limit
from storage.reader.issue_lookup import IssueRef, issues_of
from storage.reader.port import IssueCall, ProjectCall
from storage.reader.question import Question
from storage.reader.ranges import Range
from storage.reader.session import Session


class ListIssueEvents(IssueCall[EventPage], frozen=True):
    """A page of an issue's events, newest first; without a range, of all that are kept."""

    limit: int = 50
    cursor: str | None = None

    async def answer(self, session: Session) -> EventPage:
        """The page."""
        issue_ref = await session.issue_ref(self.issue)
        question = self.question_ever(session, issue_ref.project_id)
        return await _page(session, question, issue_ref, self.limit, self.cursor)


class ListProjectEvents(ProjectCall[EventPage], frozen=True):
    """A page of a project's events, newest first."""

    limit: int = 50
    cursor: str | None = None

    async def answer(self, session: Session) -> EventPage:
        """The page."""
        return await _page(session, self.question(session), None, self.limit, self.cursor)


async def _page(
    session: Session, question: Question, issue_ref: IssueRef | None, limit: int, cursor: str | None
) -> EventPage:
    page_limit(limit)
    last = read_cursor(cursor, EventCursor)
    if last is not None:
        question = replace(question, span=Range(last.start, last.end), now_ms=last.now_ms)
    rows = await newest(session, question, issue_ref, limit, last)
    events = [read_event(row) for row in rows[:limit]]
    if issue_ref is None:
        known = await issues_of_events(session, question, events)
    else:
        known = dict.fromkeys(issue_ref.fingerprints, issue_ref.issue_id)
    return EventPage(
        events=[answer(event, known) for event in events],
        next_cursor=_cursor(question, events[-1]) if len(rows) > limit else None,
    )


async def newest(
    session: Session,
    question: Question,
    issue_ref: IssueRef | None,
    limit: int,
    last: EventCursor | None,
) -> Rows:
    """Rows of a page of an issue or of the project, one more than the limit where there is one."""
    fingerprints = None if issue_ref is None else issue_ref.fingerprints
    rows: Rows = ()
    for span in event_list.windows(question, last, issue_ref, limit):
        rows = await session.rows(event_list.page(replace(question, span=span), fingerprints, limit, last))
        if len(rows) > limit:
            break
    return rows


async def issues_of_events(
    session: Session, question: Question, events: Sequence[StoredEvent]
) -> dict[int, int]:
    """The issue of each fingerprint that a known issue has."""
    fingerprints = sorted({event.fingerprint for event in events})
    rows: Rows = await session.rows(issues_of(question, fingerprints)) if fingerprints else ()
    return {fingerprint: issue for fingerprint, issue, _ in rows}


def _cursor(question: Question, last: StoredEvent) -> str:
    return write_cursor(
        EventCursor(question.span.start, question.span.end, question.now_ms, last.time, f"{last.id:032x}")
    )
