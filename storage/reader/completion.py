"""What a query may go on with: keys and values that begin with a prefix, the most frequent first."""

import re
from collections.abc import Sequence
from typing import Final

from query.keys import KEYS
from query.patterns import write_literal
from query.tree import ISSUE_FIELDS, RESERVED
from storage.errors import BadQuery
from storage.reader.parameters import Sql
from storage.reader.question import Question, Statement

VALUES: Final = 20
MANY: Final = 500
"""Keys among which the nearest to an unknown one is looked for."""
_PLAIN: Final = re.compile(r"[\w./@$#+][\w./@$#+-]*")
_PLACES: Final = ("environment", "release")
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


def tag_values(question: Question, key: str, prefix: str) -> Sql:
    """Value and events of a tag."""
    statement = question.statement()
    name = statement.parameters.add(key, "String")
    source = f"SELECT v, n FROM tag_day WHERE {statement.project} AND {_days(statement)} AND k = {name}"
    return _first(statement, source, prefix)


def field_values(question: Question, field: str, prefix: str) -> Sql:
    """Value and events (of a field of the issue: issues) of a field of the query language. Raises BadQuery for one that has no values to choose from."""
    statement = question.statement()
    if field in _PLACES:
        source = f"SELECT {field} AS v, n FROM issue_day_er WHERE {statement.project} AND {_days(statement)}"
    elif field in ISSUE_FIELDS:
        source = f"SELECT {field} AS v, 1 AS n FROM {statement.issues}"
    elif field in _COLUMNS:
        source = (
            f"SELECT {_COLUMNS[field]} AS v, 1 AS n FROM events WHERE {statement.project}"
            f" AND {statement.within('ts', question.span)}"
        )
    else:
        raise BadQuery("field", f"one of {', '.join((*_PLACES, *ISSUE_FIELDS, *_COLUMNS))}")
    return _first(statement, source, prefix)


def tag_keys(question: Question, prefix: str, limit: int = VALUES) -> Sql:
    """Key and events of a project's tags."""
    statement = question.statement()
    source = f"SELECT k AS v, n FROM tag_day WHERE {statement.project} AND {_days(statement)}"
    return _first(statement, source, prefix, limit)


def used_keys(question: Question, keys: Sequence[str]) -> Sql:
    """Those of the keys that a tag of the project has in the question's range."""
    statement = question.statement()
    wanted = statement.parameters.add(list(keys), "Array(String)")
    return statement.ready(
        f"SELECT k FROM tag_day WHERE {statement.project} AND {_days(statement)} AND k IN {wanted}"
        " GROUP BY k HAVING sum(n) > 0"
    )


def known_keys(prefix: str) -> list[str]:
    """Keys of the language itself."""
    return [key for key in KEYS if key.startswith(prefix)]


def _first(statement: Statement, source: str, prefix: str, limit: int = VALUES) -> Sql:
    begins = f"startsWith(v, {statement.parameters.add(prefix, 'String')})" if prefix else "1"
    return statement.ready(
        f"SELECT v, sum(n) AS events FROM ({source}) WHERE v != '' AND {begins} GROUP BY v HAVING events > 0"
        f" ORDER BY events DESC, v LIMIT {limit:d}"
    )


def _days(statement: Statement) -> str:
    return f"day >= toDate({statement.parameters.moment(statement.question.span.start)})"


def as_key(tag: str) -> str:
    """A tag's key as a query names it."""
    if tag not in RESERVED and _PLAIN.fullmatch(tag):
        return tag
    return f'tags["{write_literal(tag)}"]'
