"""Filters as links: a tag or field with a value, written the way people would type it."""

import re
from typing import Final

from query.parse import parse
from query.patterns import write_literal
from query.print import to_text
from query.tree import RESERVED, And, Is, Query, conjuncts
from schemas.errors import QueryError

TABS: Final = {"open": "Open", "regressed": "Regressed", "resolved": "Resolved", "ignored": "Ignored"}
"""States that a list of issues is shown in, and their words."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./@+-]*[A-Za-z0-9]")
_WORDS: Final = frozenset({"AND", "OR", "NOT"})


def tag_query(key: str, value: str) -> str:
    """The query for a tag's value."""
    plain = _NAME.fullmatch(key) and key not in RESERVED and key not in _WORDS
    return f'{key if plain else f"""tags["{write_literal(key)}"]"""}:{_value(value)}'


def field_query(field: str, value: str) -> str:
    """The query for a value of one of the query language's fields."""
    return f"{field}:{_value(value)}"


def renamed(query: str, key: str, other: str) -> str:
    """The query as typed with another key in the place of one; where that is written in another way it stays."""
    written = re.compile(rf"(?<![^\s(:-]){re.escape(key)}(?=:)|(?<=has:){re.escape(key)}(?![^\s)])")
    return written.sub(lambda _: other, query)


def state_of_query(query: str) -> tuple[str, str]:
    """The state that a query asks for beside all else, and the rest of it; no state and the query itself where it asks for none, or for several."""
    try:
        items = conjuncts(parse(query))
    except QueryError:
        return "", query
    states = [item for item in items if isinstance(item, Is)]
    if len(states) != 1 or len(states[0].states) != 1 or states[0].states[0] not in TABS:
        return "", query
    rest = tuple(item for item in items if item is not states[0])
    left = rest[0] if len(rest) == 1 else And(rest)
    state = states[0].states[0]
    typed = re.sub(rf"\s*(?<!\S)is:{state}(?!\S)\s*", " ", query).strip()
    return state, typed if _means(typed, left) else to_text(left)


def _means(text: str, query: Query) -> bool:
    try:
        return parse(text) == query
    except QueryError:
        return False


def _value(value: str) -> str:
    if _PLAIN.fullmatch(value) and value[0].isalnum() and value not in _WORDS:
        return value
    return f'"{write_literal(value)}"'
