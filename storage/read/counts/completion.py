"""Completion of queries, and warnings about unknown keys.

The completions are keys and values that start with a prefix, the most frequent first.
"""

import re
from collections.abc import Sequence
from typing import Final

from query.keys import KEYS, nearest
from query.patterns import write_literal
from query.tree import ISSUE_FIELDS, RESERVED
from schemas.read_api import Keys, KeyWarning, TagValue, TagValues
from storage.errors import BadQuery
from storage.read.execute import Sql
from storage.read.query.question import Question, Statement
from storage.read.reader import ReadCall, Session

MAX_COMPLETIONS: Final = 20
_MAX_SIMILAR_KEYS: Final = 500
"""Tags that an unknown key is compared with."""
_PLAIN: Final = re.compile(r"[\w./@$#+][\w./@$#+-]*")
_DEPLOYMENT: Final = ("environment", "release")
_COLUMNS: Final = {
    "platform": "platform",
    "os": "os",
    "osVersion": "os_version",
    "model": "model",
    "locale": "locale",
    "sdk": "sdk",
    "type": "error_type",
    "user": "user_id",
    "file": "arrayJoin(files)",
    "function": "arrayJoin(functions)",
}


SUGGESTED: Final = (
    *_DEPLOYMENT,
    *ISSUE_FIELDS,
    *(key for key in _COLUMNS if key not in {"user", "file", "function"}),
)
"""Fields with few enough values to read them at each keystroke."""


class CompleteTag(ReadCall[TagValues], frozen=True):
    """Values of a tag that start with the prefix, in the last 14 days."""

    project: int
    key: str
    prefix: str = ""

    async def fetch(self, session: Session) -> TagValues:
        """The values, the most frequent first."""
        statement = session.question(self.project).statement()
        name = statement.parameters.add(self.key, "String")
        source = f"SELECT v, n FROM tag_day WHERE {statement.project} AND {_days(statement)} AND k = {name}"
        return await _values(session, _first(statement, source, self.prefix))


class CompleteField(ReadCall[TagValues], frozen=True):
    """Values of a field of the query language that start with the prefix, in the last 14 days."""

    project: int
    field: str
    prefix: str = ""

    async def fetch(self, session: Session) -> TagValues:
        """The values, the most frequent first."""
        question = session.question(self.project)
        return await _values(session, field_values(question, self.field, self.prefix))


class CompleteKey(ReadCall[Keys], frozen=True):
    """Keys that start with the prefix.

    Keys of the language are first, then tags of the last 14 days in query syntax.
    """

    project: int
    prefix: str = ""

    async def fetch(self, session: Session) -> Keys:
        rows = await session.rows(_tag_keys(session.question(self.project), self.prefix))
        known = [key for key in KEYS if key.startswith(self.prefix)]
        return Keys([*known, *(as_key(key) for key, _ in rows)])


class FindUnknownKeys(ReadCall[list[KeyWarning]], frozen=True):
    """The tags that no event of the project has, each with the most similar known keys."""

    project: int
    keys: Sequence[str]

    async def fetch(self, session: Session) -> list[KeyWarning]:
        """A warning for each unknown key."""
        if not self.keys:
            return []
        used = {
            key for (key,) in await session.rows(_used_keys(session.question_ever(self.project), self.keys))
        }
        unknown = [key for key in self.keys if key not in used]
        if not unknown:
            return []
        rows = await session.rows(_tag_keys(session.question(self.project), "", _MAX_SIMILAR_KEYS))
        tags = [key for key, _ in rows]
        return [KeyWarning(key, nearest(key, [*KEYS, *tags])) for key in unknown]


async def _values(session: Session, sql: Sql) -> TagValues:
    return TagValues([TagValue(value, int(events)) for value, events in await session.rows(sql)])


def field_values(question: Question, field: str, prefix: str) -> Sql:
    """Values of a field and their events (issues, for a field of the issue).

    Raises BadQuery for a field without completion.
    """
    statement = question.statement()
    if field in _DEPLOYMENT:
        source = f"SELECT {field} AS v, n FROM issue_day_er WHERE {statement.project} AND {_days(statement)}"
    elif field in ISSUE_FIELDS:
        column = {"firstRelease": "first_release"}.get(field, field)
        source = f"SELECT {column} AS v, 1 AS n FROM {statement.issues}"
    elif field in _COLUMNS:
        source = (
            f"SELECT {_COLUMNS[field]} AS v, 1 AS n FROM events WHERE {statement.project}"
            f" AND {statement.within('ts', question.span)}"
        )
    else:
        raise BadQuery("field", f"one of {', '.join((*_DEPLOYMENT, *ISSUE_FIELDS, *_COLUMNS))}")
    return _first(statement, source, prefix)


def _tag_keys(question: Question, prefix: str, limit: int = MAX_COMPLETIONS) -> Sql:
    """Keys of a project's tags and their events."""
    statement = question.statement()
    source = f"SELECT k AS v, n FROM tag_day WHERE {statement.project} AND {_days(statement)}"
    return _first(statement, source, prefix, limit)


def _used_keys(question: Question, keys: Sequence[str]) -> Sql:
    """The keys that are tags of the project in the question's range."""
    statement = question.statement()
    wanted = statement.parameters.add(list(keys), "Array(String)")
    return statement.ready(
        f"SELECT k FROM tag_day WHERE {statement.project} AND {_days(statement)} AND k IN {wanted}"
        " GROUP BY k HAVING sum(n) > 0"
    )


def _first(statement: Statement, source: str, prefix: str, limit: int = MAX_COMPLETIONS) -> Sql:
    begins = f"startsWith(v, {statement.parameters.add(prefix, 'String')})" if prefix else "1"
    return statement.ready(
        f"SELECT v, sum(n) AS events FROM ({source}) WHERE v != '' AND {begins} GROUP BY v HAVING events > 0"
        f" ORDER BY events DESC, v LIMIT {limit:d}"
    )


def _days(statement: Statement) -> str:
    return f"day >= toDate({statement.parameters.moment(statement.question.span.start)})"


def as_key(tag: str) -> str:
    """A tag's key in query syntax."""
    if tag not in RESERVED and _PLAIN.fullmatch(tag):
        return tag
    return f'tags["{write_literal(tag)}"]'
