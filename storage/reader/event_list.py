"""Statements of pages of events."""

from collections.abc import Iterator, Sequence
from typing import Final

from storage.reader.cursors import EventCursor
from storage.reader.event_lookup import beside, of_fingerprints
from storage.reader.event_rows import COLUMNS
from storage.reader.issue_lookup import IssueRef
from storage.reader.parameters import Sql
from storage.reader.question import Question
from storage.reader.ranges import DAY_MS, HOUR_MS, Range

_WINDOWS: Final[tuple[int, ...]] = (6 * HOUR_MS, 3 * DAY_MS)
_PAGES: Final = 3


def page(
    question: Question, fingerprints: Sequence[int] | None, limit: int, cursor: EventCursor | None
) -> Sql:
    """`COLUMNS` of the newest events in range and query, one more than the limit; of some fingerprints or of all."""
    statement = question.statement()
    conditions = [statement.project, statement.within("ts", question.span), statement.whole]
    if fingerprints is not None:
        conditions.append(of_fingerprints(statement, fingerprints))
    if cursor is not None:
        conditions.append(beside(statement, "<", cursor.time, int(cursor.event, 16)))
    return statement.ready(
        f"SELECT {COLUMNS} FROM events WHERE {' AND '.join(conditions)} ORDER BY ts DESC, id DESC LIMIT {limit + 1:d}"
    )


def windows(
    question: Question, cursor: EventCursor | None, issue_ref: IssueRef | None, limit: int
) -> Iterator[Range]:
    """The newest part of a range, and the whole of it.

    The events of a project aren't kept in the order of time, and those of an issue in many parts: the newest ones are cheap to
    find only in a short range. For an issue it is one in which a page of events is to be expected.
    """
    span = question.span
    newest = question.now_ms if span.end is None else span.end
    lengths = _WINDOWS
    if issue_ref is not None:
        newest = min(newest, issue_ref.last_seen)
        lengths = (max(HOUR_MS, _PAGES * limit * issue_ref.gap),)
    if cursor is not None:
        newest = cursor.time
    for length in lengths:
        if newest - length > span.start:
            yield Range(newest - length, span.end)
    yield span


def payloads_by_id(question: Question, events: Sequence[int]) -> Sql:
    """Id and payload of events, of those whose payload is still kept."""
    statement = question.statement()
    ids = statement.parameters.add(list(events), "Array(UInt128)")
    return statement.ready(
        f"SELECT id, payload FROM payloads WHERE {statement.project} AND id IN {ids}", raw=("payload",)
    )
