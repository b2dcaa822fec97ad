"""Queries for links: a tag or field with a value, written as people would type it."""

import re
from typing import Final

from query.parse import parse
from query.patterns import write_literal
from query.print import to_text
from query.tree import RESERVED, And, Is, Query, conjuncts
from schemas.errors import QueryError

TABS: Final = {"open": "Open", "regressed": "Regressed", "resolved": "Resolved", "ignored": "Ignored"}
"""Tabs of the issue list by state."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./@+-]*[A-Za-z0-9]")
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


def tag_query(key: str, value: str) -> str:
    """The query for a tag's value."""
    plain = _NAME.fullmatch(key) and key not in RESERVED and key not in _OPERATORS
    return f'{key if plain else f"""tags["{write_literal(key)}"]"""}:{_value(value)}'


def field_query(field: str, value: str) -> str:
    """The query for a value of a field of the query language."""
    return f"{field}:{_value(value)}"


def rename_key(query: str, key: str, replacement: str) -> str:
    """The query with a key renamed where it is typed plainly; other notations stay unchanged."""
    occurrence = re.compile(rf"(?<![^\s(:-]){re.escape(key)}(?=:)|(?<=has:){re.escape(key)}(?![^\s)])")
    return occurrence.sub(lambda _: replacement, query)


def split_state(query: str) -> tuple[str, str]:
    """The one `is:STATE` term of a query and the query without it; ("", query) if it has none or several."""
    try:
        items = conjuncts(parse(query))
    except QueryError:
        return "", query
    states = [item for item in items if isinstance(item, Is)]
    if len(states) != 1 or len(states[0].states) != 1 or states[0].states[0] not in TABS:
        return "", query
    others = tuple(item for item in items if item is not states[0])
    remaining = others[0] if len(others) == 1 else And(others)
    state = states[0].states[0]
    typed = re.sub(rf"\s*(?<!\S)is:{state}(?!\S)\s*", " ", query).strip()
    return state, typed if _means(typed, remaining) else to_text(remaining)


def _means(text: str, query: Query) -> bool:
    try:
        return parse(text) == query
    except QueryError:
        return False


def _value(value: str) -> str:
    if _PLAIN.fullmatch(value) and value[0].isalnum() and value not in _OPERATORS:
        return value
    return f'"{write_literal(value)}"'
