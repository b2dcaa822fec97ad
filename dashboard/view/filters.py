"""Queries for links: a tag or field with a value, written as people would type it."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from query.parse import parse
from query.patterns import write_literal
from query.print import to_text
from query.tree import RESERVED, And, Filter, Is, Query, conjuncts
from schemas.errors import QueryError
from schemas.limits import Limit

TABS: Final = {"open": "Open", "regressed": "Regressed", "resolved": "Resolved", "ignored": "Ignored"}
"""Tabs of the issue list by state."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./@+-]*[A-Za-z0-9]")
_MAX_VALUE: Final = Limit.TAG_VALUE_LENGTH.maximum
"""A longer value is searched by its first characters: an address has room for some thousand characters."""
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


def tag_query(key: str, value: str) -> str:
    """The query for a tag's value."""
    plain = _NAME.fullmatch(key) and key not in RESERVED and key not in _OPERATORS
    return f'{key if plain else f"""tags["{write_literal(key)}"]"""}:{_value(value)}'


def field_query(field: str, value: str) -> str:
    """The query for a value of a field of the query language."""
    return f"{field}:{_value(value)}"


def listed_query(field: str, values: Sequence[str]) -> str:
    """The query for a field with one of some values."""
    if len(values) == 1:
        return field_query(field, values[0])
    return f"{field}:[{', '.join(map(_value, values))}]"


def pattern_query(field: str, parts: Iterable[str]) -> str:
    """The query for a field whose value has these parts in order, with any text between them."""
    return f'{field}:"{"*".join(map(write_literal, parts))}"'


def rename_key(query: str, key: str, replacement: str) -> str:
    """The query with a key renamed where it is typed plainly; other notations stay unchanged."""
    occurrence = re.compile(rf"(?<![^\s(:-]){re.escape(key)}(?=:)|(?<=has:){re.escape(key)}(?![^\s)])")
    return occurrence.sub(lambda _: replacement, query)


def split_state(query: str) -> tuple[str, str]:
    """The one `is:STATE` term of a query and the query without it; ("", query) if it has none or several."""
    states = [item for item in _terms(query) if isinstance(item, Is)]
    if len(states) != 1 or len(states[0].states) != 1 or states[0].states[0] not in TABS:
        return "", query
    state = states[0].states[0]
    return state, _without(query, states[0], f"is:{state}")


def split_environment(query: str) -> tuple[str, str]:
    """The one environment that a query is about, and the query without it.

    Returns ("", query) if it has none, several or a wildcard.
    """
    named = [
        item
        for item in _terms(query)
        if isinstance(item, Filter) and (item.key, item.is_tag) == ("environment", False)
    ]
    if len(named) != 1 or len(named[0].values) != 1 or not named[0].values[0].is_literal:
        return "", query
    [environment] = named[0].values[0].parts
    if not environment:
        return "", query
    return environment, _without(query, named[0], field_query("environment", environment))


def split_view(query: str) -> tuple[str, str, str]:
    """The query of a saved view as the list's fields have it: environment, state, and the rest in the search box."""
    environment, others = split_environment(query)
    state, text = split_state(others)
    inner = text[1:-1]
    is_enclosed = text.startswith("(") and _terms(inner) == _terms(text) != ()
    return environment, state, inner if is_enclosed else text


def _terms(query: str) -> tuple[Query, ...]:
    """Conditions of the whole query; none if it doesn't parse."""
    try:
        return conjuncts(parse(query))
    except QueryError:
        return ()


def _without(query: str, term: Query, typed: str) -> str:
    """The query without a term, as it was typed if the term was typed like that."""
    others = tuple(item for item in _terms(query) if item != term)
    remaining = others[0] if len(others) == 1 else And(others)
    text = re.sub(rf"\s*(?<!\S){re.escape(typed)}(?!\S)\s*", " ", query).strip()
    return text if _means(text, remaining) else to_text(remaining)


def _means(text: str, query: Query) -> bool:
    try:
        return parse(text) == query
    except QueryError:
        return False


def _value(value: str) -> str:
    if len(value) > _MAX_VALUE:
        return f'"{write_literal(value[:_MAX_VALUE])}*"'
    if _PLAIN.fullmatch(value) and value[0].isalnum() and value not in _OPERATORS:
        return value
    return f'"{write_literal(value)}"'
