"""The most frequent values of each tag."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from query.tree import EVERYTHING
from storage.reader.answers import TagFacet, TagValue
from storage.reader.parameters import Sql
from storage.reader.question import Question, Statement
from storage.reader.ranges import DAY_MS, Range

VALUES: Final = 10
SAMPLE: Final = 50_000
"""Events that the facets of a large set are made of: the newest ones."""
_MAX_KEYS: Final = 200


def by_day(question: Question) -> Sql:
    """Facets of a whole project from its daily counts: every day that the range touches."""
    statement = question.statement()
    return statement.ready(
        _top(f"SELECT k, v, n FROM tag_day WHERE {statement.project} AND {_touched_days(statement)}")
    )


def answers_by_day(question: Question, fingerprints: Sequence[int] | None) -> bool:
    """Whether the daily counts know the answer."""
    return fingerprints is None and question.of_issue == EVERYTHING and question.of_event == EVERYTHING


def size(question: Question, fingerprints: Sequence[int] | None) -> Sql:
    """How many events there are, counted no further than one beyond the sample."""
    statement = question.statement()
    found = f"SELECT 1 FROM events WHERE {_conditions(statement, fingerprints)} LIMIT {SAMPLE + 1:d}"
    return statement.ready(f"SELECT count() FROM ({found})")


def days(question: Question, fingerprints: Sequence[int]) -> Sql:
    """Start of a day (Unix ms) and events of it, the newest day first."""
    statement = question.statement()
    return statement.ready(
        f"SELECT toInt64(toUnixTimestamp(toDateTime(day, 'UTC'))) * 1000, sum(n) FROM issue_day WHERE {statement.project}"
        f" AND fingerprint IN {statement.numbers(list(fingerprints))} AND {_touched_days(statement)} GROUP BY day ORDER BY day DESC"
    )


def has_days(question: Question) -> bool:
    """Whether the daily counts tell in which days the sample lies."""
    return question.of_issue == EVERYTHING and question.of_event == EVERYTHING and question.span.end is None


def counted_by_day(question: Question) -> bool:
    """Whether the rows of `days` add up to the events in range and query."""
    return has_days(question) and question.span.start % DAY_MS == 0


def sampled_range(rows: Iterable[Sequence[int]], span: Range) -> Range:
    """The part of a range without an end that has at least as many events as the sample, by the rows of `days`."""
    found = 0
    for start, events in rows:
        found += events
        if found >= SAMPLE:
            return Range(max(start, span.start), None)
    return span


def by_event(question: Question, fingerprints: Sequence[int] | None, sampled: bool) -> Sql:
    """Facets of the events in range and query, or of the newest of them."""
    statement = question.statement()
    newest = f" ORDER BY ts DESC LIMIT {SAMPLE:d}" if sampled else ""
    found = f"SELECT tags FROM events WHERE {_conditions(statement, fingerprints)}{newest}"
    return statement.ready(
        _top(f"SELECT k, v, 1 AS n FROM ({found}) ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v")
    )


def facets(rows: Iterable[Sequence[Any]]) -> list[TagFacet]:
    """The rows of a statement of this module, which come with the most frequent key and value first."""
    found: dict[str, tuple[int, list[TagValue]]] = {}
    for key, value, events, distinct in rows:
        found.setdefault(key, (int(distinct), []))[1].append(TagValue(value, int(events)))
    return [TagFacet(key, distinct, values) for key, (distinct, values) in found.items()]


def _top(source: str) -> str:
    """Key, value, events and distinct values of the key; what was counted too often and mended since leaves rows of nothing."""
    counted = (
        "SELECT k, v, sum(n) AS events, count() OVER (PARTITION BY k) AS distinct, sum(events) OVER (PARTITION BY k) AS total"
        f" FROM ({source}) GROUP BY k, v HAVING events > 0"
    )
    return (
        f"SELECT k, v, events, distinct FROM ({counted})"
        f" ORDER BY total DESC, k, events DESC, v LIMIT {VALUES} BY k LIMIT {VALUES * _MAX_KEYS}"
    )


def _conditions(statement: Statement, fingerprints: Sequence[int] | None) -> str:
    conditions = [statement.project, statement.within("ts", statement.question.span), statement.whole]
    if fingerprints is not None:
        conditions.append(
            f"fingerprint = {statement.parameters.add(fingerprints[0], 'UInt64')}"
            if len(fingerprints) == 1
            else f"fingerprint IN {statement.numbers(list(fingerprints))}"
        )
    return " AND ".join(conditions)


def _touched_days(statement: Statement) -> str:
    span = statement.question.span
    since = f"day >= toDate({statement.parameters.moment(span.start)})"
    if span.end is None:
        return since
    return f"{since} AND day <= toDate({statement.parameters.moment(span.end - 1)})"
