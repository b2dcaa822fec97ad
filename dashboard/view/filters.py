"""Filters as links: a tag or field with a value, written the way people would type it."""

import re
from typing import Final

from storage.query.patterns import write_literal
from storage.query.tree import RESERVED

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


def _value(value: str) -> str:
    if _PLAIN.fullmatch(value) and value[0].isalnum() and value not in _WORDS:
        return value
    return f'"{write_literal(value)}"'
