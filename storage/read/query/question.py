"""A parsed read request; `Statement` turns it into SQL.

A request has a project, a range, and the query's conditions on issues and on events.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from query.parse import parse
from query.person import NO_PERSON, words_of
from query.tree import EVERYTHING, And, Filter, Has, Not, Or, Query
from schemas.errors import QueryError
from storage.errors import BadQuery
from storage.read.execute import Sql
from storage.read.query.query_sql import (
    Parameters,
    SqlScope,
    about_issue,
    current_issues,
    event_condition,
    issue_condition,
    split,
)
from storage.read.query.ranges import Range

Level = Literal["rollup", "deployment", "events"]
"""The smallest sufficient source: counts alone, counts by environment and release, or events."""

_DEPLOYMENT_KEYS = frozenset({"environment", "release"})


class Question(Struct, frozen=True):
    """`of_issue` and `of_event` are the two halves of the query, joined by AND."""

    project: int
    span: Range
    now_ms: int
    of_issue: Query = EVERYTHING
    of_event: Query = EVERYTHING

    @property
    def level(self) -> Level:
        """The smallest source that can answer the query."""
        if self.of_event == EVERYTHING:
            return "rollup"
        return "deployment" if _about_deployment(self.of_event) else "events"

    @property
    def unfiltered(self) -> bool:
        """Whether the query is empty."""
        return self.of_issue == EVERYTHING and self.of_event == EVERYTHING

    def statement(self) -> "Statement":
        """A new statement, with its own parameters."""
        return Statement(self, Parameters())


class Statement:
    """Conditions of one SQL statement, and their parameters."""

    def __init__(self, question: Question, parameters: Parameters) -> None:
        self.question = question
        self.parameters = parameters
        self.scope = SqlScope(question.project, question.now_ms, parameters)

    @property
    def project(self) -> str:
        """The condition on the project, the first column of every primary key."""
        return f"project_id = {self.parameters.add(self.question.project, 'UInt32')}"

    @property
    def issues(self) -> str:
        """The matching rows of `issues`, for use after FROM; AND may follow."""
        return f"{current_issues(self.scope)} AND {issue_condition(self.question.of_issue, self.scope)}"

    @property
    def event(self) -> str:
        """The query's condition on an event, without its conditions on the issue."""
        return event_condition(self.question.of_event, self.scope)

    @property
    def whole(self) -> str:
        """The query's condition on an event, with its conditions on the issue."""
        both = (self.question.of_issue, self.question.of_event)
        return " AND ".join(event_condition(half, self.scope) for half in both)

    def within(self, column: str, span: Range, kind: str = "ts") -> str:
        """The condition that a column of times, hours or days is within the range."""
        wrap = {"ts": "{}", "hour": "toDateTime({}, 'UTC')", "day": "toDate({})"}[kind]
        bounds = [f"{column} >= {wrap.format(self.parameters.moment(span.start))}"]
        if span.end is not None:
            bounds.append(f"{column} < {wrap.format(self.parameters.moment(span.end))}")
        return " AND ".join(bounds)

    def of_fingerprints(self, fingerprints: Sequence[int]) -> str:
        """The condition that an event has one of the fingerprints."""
        # With a single value ClickHouse reads in the order of the primary key.
        if len(fingerprints) == 1:
            return f"fingerprint = {self.parameters.add(fingerprints[0], 'UInt64')}"
        return f"fingerprint IN {self.numbers(fingerprints)}"

    def ready(self, text: str, raw: tuple[str, ...] = ()) -> Sql:
        return Sql(text, self.parameters.values, raw)

    def numbers(self, values: Sequence[int]) -> str:
        """The placeholder of a list of 64-bit numbers."""
        return self.parameters.add(list(values), "Array(UInt64)")


def question(project: int, text: str, span: Range, now_ms: int) -> Question:
    """Parse the query of a call. Raises BadQuery if it is invalid."""
    try:
        query = parse(text)
    except QueryError as error:
        raise BadQuery("query", error.message) from None
    if words_of(query):
        raise BadQuery("query", NO_PERSON)
    of_issue, of_event = split(query)
    return Question(project, span, now_ms, of_issue, of_event)


def _about_deployment(query: Query) -> bool:
    """Whether the query depends only on environment, release and the issue."""
    match query:
        case And(items) | Or(items):
            return all(map(_about_deployment, items))
        case Not(item):
            return _about_deployment(item)
        case Filter(key, is_tag) | Has(key, is_tag):
            return (not is_tag and key in _DEPLOYMENT_KEYS) or about_issue(query)
        case _:
            return about_issue(query)
