"""A question as the builders of statements take it: project, range, what is asked of the issue and what of the event."""

from typing import Literal

from msgspec import Struct

from query.parse import parse
from query.tree import EVERYTHING, And, Filter, Has, Not, Or, Query
from schemas.errors import QueryError
from storage.errors import BadQuery
from storage.reader.parameters import Parameters, Sql
from storage.reader.query_sql import (
    SqlScope,
    about_issue,
    current_issues,
    event_condition,
    issue_condition,
    split,
)
from storage.reader.ranges import Range

Level = Literal["rollup", "place", "events"]
"""The smallest table that knows enough: counts alone, counts by environment and release, or each event."""

_PLACE_KEYS = frozenset({"environment", "release"})


class Question(Struct, frozen=True):
    """`of_issue` and `of_event` are the query's two halves; each statement gets parameters of its own."""

    project: int
    span: Range
    now_ms: int
    of_issue: Query = EVERYTHING
    of_event: Query = EVERYTHING

    @property
    def level(self) -> Level:
        """Where the answer can be read."""
        if self.of_event == EVERYTHING:
            return "rollup"
        return "place" if _about_place(self.of_event) else "events"

    def statement(self) -> "Statement":
        """The start of a statement that answers a part of this question."""
        return Statement(self, Parameters())


class Statement:
    """Conditions of one statement, and the parameters that go with it."""

    def __init__(self, question: Question, parameters: Parameters) -> None:
        self.question = question
        self.parameters = parameters
        self.scope = SqlScope(question.project, question.now_ms, parameters)

    @property
    def project(self) -> str:
        """The condition on the project, which begins every key."""
        return f"project_id = {self.parameters.add(self.question.project, 'UInt32')}"

    @property
    def issues(self) -> str:
        """The rows of `issues` that fit: ready for FROM, open for AND."""
        return f"{current_issues(self.scope)} AND {issue_condition(self.question.of_issue, self.scope)}"

    @property
    def event(self) -> str:
        """The condition on an event; it leaves out what is asked of the issue."""
        return event_condition(self.question.of_event, self.scope)

    @property
    def whole(self) -> str:
        """The condition on an event, with what is asked of its issue."""
        both = (self.question.of_issue, self.question.of_event)
        return " AND ".join(event_condition(half, self.scope) for half in both)

    def within(self, column: str, span: Range, kind: str = "ts") -> str:
        """The condition that a column of times, hours or days lies in the range."""
        wrap = {"ts": "{}", "hour": "toDateTime({}, 'UTC')", "day": "toDate({})"}[kind]
        bounds = [f"{column} >= {wrap.format(self.parameters.moment(span.start))}"]
        if span.end is not None:
            bounds.append(f"{column} < {wrap.format(self.parameters.moment(span.end))}")
        return " AND ".join(bounds)

    def ready(self, text: str, raw: tuple[str, ...] = ()) -> Sql:
        """The statement with this text."""
        return Sql(text, self.parameters.values, raw)

    def numbers(self, values: list[int]) -> str:
        """The placeholder of a list of 64-bit numbers."""
        return self.parameters.add(values, "Array(UInt64)")


def question(project: int, text: str, span: Range, now_ms: int) -> Question:
    """The question of a call. Raises BadQuery where the text is no query."""
    try:
        of_issue, of_event = split(parse(text))
    except QueryError as error:
        raise BadQuery.of(error) from None
    return Question(project, span, now_ms, of_issue, of_event)


def _about_place(query: Query) -> bool:
    """Whether environment and release, and the issue, decide the query."""
    match query:
        case And(items) | Or(items):
            return all(map(_about_place, items))
        case Not(item):
            return _about_place(item)
        case Filter(key, is_tag) | Has(key, is_tag):
            return (not is_tag and key in _PLACE_KEYS) or about_issue(query)
        case _:
            return about_issue(query)
