"""Tag facets: the most frequent values of each tag."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from schemas.read_api import TagFacet, TagFacets, TagValue
from schemas.times import DAY_MS
from storage.read.counts.range_counts import DAY_START
from storage.read.execute import Rows, Sql
from storage.read.query.question import Question, Statement
from storage.read.query.ranges import Range
from storage.read.reader import IssueCall, ProjectCall, Session

MAX_VALUES: Final = 10
SAMPLE: Final = 10_000
"""Facets of more events than this are made from the newest ones: shares are then right to a percent, and the
time doesn't grow."""
_MAX_KEYS: Final = 200


class CountIssueTags(IssueCall[TagFacets], frozen=True):
    """The most frequent values of each tag among an issue's events; by default of all stored events."""

    async def fetch(self, session: Session) -> TagFacets:
        row = await session.issue(self.issue)
        question = self.question_ever(session, row.project_id)
        if row.events <= SAMPLE:
            facets = _answer(await session.rows(_by_event(question, row.fingerprints)), sampled=False)
            # The row may be older than the events.
            if facets.sample_events <= SAMPLE:
                return facets
        return await _facets(session, question, row.fingerprints)


class CountProjectTags(ProjectCall[TagFacets], frozen=True):
    """The most frequent values of each tag among a project's events; without a query by whole days."""

    async def fetch(self, session: Session) -> TagFacets:
        question = self.question(session)
        if not question.unfiltered:
            return await _facets(session, question, None)
        statement = question.statement()
        days = f"SELECT k, v, n FROM tag_day WHERE {statement.project} AND {_touched_days(statement)}"
        rows = await session.rows(statement.ready(_top(days)))
        return TagFacets(tags=_read_facets(rows), sampled=False, sample_events=0)


async def _facets(session: Session, question: Question, fingerprints: Sequence[int] | None) -> TagFacets:
    days: Rows = ()
    # Whether daily counts locate the sample, and whether they add up to the events of the range.
    has_days = fingerprints is not None and question.unfiltered and question.span.end is None
    if fingerprints is not None and has_days and question.span.start % DAY_MS == 0:
        days = await session.rows(_days(question, fingerprints))
        size = sum(events for _, events in days)
    else:
        size = (await session.rows(_size(question, fingerprints)))[0][0]
    sampled = size > SAMPLE
    if sampled and fingerprints is not None and has_days:
        days = days or await session.rows(_days(question, fingerprints))
        question = replace(question, span=sampled_range(days, question.span))
    return _answer(await session.rows(_by_event(question, fingerprints, sampled=sampled)), sampled=sampled)


def sampled_range(days: Iterable[Sequence[int]], span: Range) -> Range:
    """The newest part of a range without end that has at least as many events as the sample.

    The rows of `_days` determine it.
    """
    total = 0
    for start, events in days:
        total += events
        if total >= SAMPLE:
            return Range(max(start, span.start), None)
    return span


def _size(question: Question, fingerprints: Sequence[int] | None) -> Sql:
    """The number of events, counted up to one more than the sample."""
    statement = question.statement()
    events = f"SELECT 1 FROM events WHERE {_conditions(statement, fingerprints)} LIMIT {SAMPLE + 1:d}"
    return statement.ready(f"SELECT count() FROM ({events})")


def _days(question: Question, fingerprints: Sequence[int]) -> Sql:
    """Start of a day (Unix ms) and its events, newest day first."""
    statement = question.statement()
    return statement.ready(
        f"SELECT {DAY_START}, sum(n) FROM issue_day WHERE {statement.project}"
        f" AND fingerprint IN {statement.numbers(fingerprints)} AND {_touched_days(statement)}"
        " GROUP BY day ORDER BY day DESC"
    )


def _by_event(question: Question, fingerprints: Sequence[int] | None, *, sampled: bool = False) -> Sql:
    """Facets of the newest events in range and query, or of one more than the sample; the key NULL has each once."""
    statement = question.statement()
    most = f"ORDER BY ts DESC LIMIT {SAMPLE:d}" if sampled else f"LIMIT {SAMPLE + 1:d}"
    events = f"SELECT tags FROM events WHERE {_conditions(statement, fingerprints)} {most}"
    return statement.ready(
        _top(
            f"SELECT k, v, 1 AS n FROM ({events})"
            " ARRAY JOIN arrayPushFront(mapKeys(tags), NULL) AS k, arrayPushFront(mapValues(tags), '') AS v"
        )
    )


def _answer(rows: Rows, *, sampled: bool) -> TagFacets:
    """The rows of `_by_event`."""
    events = sum(int(events) for key, _, events, _ in rows if key is None)
    facets = _read_facets(row for row in rows if row[0] is not None)
    return TagFacets(tags=facets, sampled=sampled, sample_events=events)


def _read_facets(rows: Iterable[Sequence[Any]]) -> list[TagFacet]:
    """The rows of `_top`, which are ordered by the frequency of key and value."""
    facets: dict[str, TagFacet] = {}
    for key, value, events, distinct in rows:
        facets.setdefault(key, TagFacet(key, int(distinct), [])).values.append(TagValue(value, int(events)))
    return list(facets.values())


def _top(source: str) -> str:
    """Key, value, events and distinct values of the key.

    Repairs of excess counts leave rows that add up to 0; they are excluded.
    """
    counted = (
        "SELECT k, v, sum(n) AS events, count() OVER (PARTITION BY k) AS distinct,"
        " sum(events) OVER (PARTITION BY k) AS total"
        f" FROM ({source}) GROUP BY k, v HAVING events > 0"
    )
    return (
        f"SELECT k, v, events, distinct FROM ({counted})"
        f" ORDER BY total DESC, k, events DESC, v LIMIT {MAX_VALUES} BY k LIMIT {MAX_VALUES * _MAX_KEYS}"
    )


def _conditions(statement: Statement, fingerprints: Sequence[int] | None) -> str:
    conditions = [statement.project, statement.within("ts", statement.question.span), statement.whole]
    if fingerprints is not None:
        conditions.append(statement.of_fingerprints(fingerprints))
    return " AND ".join(conditions)


def _touched_days(statement: Statement) -> str:
    span = statement.question.span
    since = f"day >= toDate({statement.parameters.moment(span.start)})"
    if span.end is None:
        return since
    return f"{since} AND day <= toDate({statement.parameters.moment(span.end - 1)})"
