"""Patterns: reading and writing text with `*`, and matching.

A backslash escapes `*`, `"` and a backslash; any other backslash is literal.
"""

import re
from collections.abc import Callable, Sequence

from query.tree import Pattern

_ESCAPED = re.compile(r'\\([\\"*])|(\*)|([^\\*]+|\\)', re.DOTALL)
_SPECIAL = re.compile(r'[\\"*]')


def read_pattern(text: str) -> Pattern:
    """The pattern of a value, without its quotes."""
    parts = [""]
    for escaped, star, plain in _ESCAPED.findall(text):
        if star:
            parts.append("")
        else:
            parts[-1] += escaped or plain
    return Pattern(normal(parts))


def normal(parts: Sequence[str]) -> tuple[str, ...]:
    """`parts` without empty ones between two wildcards."""
    return (*parts[:1], *filter(None, parts[1:-1]), *(parts[-1:] if len(parts) > 1 else ()))


def read_literal(text: str) -> str:
    """The text without escapes; `*` is literal."""
    return _ESCAPED.sub(lambda found: found[1] or found[0], text)


def write_literal(text: str) -> str:
    """The text with its special characters escaped, ready for quotes."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def write_pattern(pattern: Pattern) -> str:
    """The text of a pattern for `read_pattern`, ready for quotes."""
    return "*".join(map(write_literal, pattern.parts))


def fitting(pattern: Pattern) -> Callable[[str], bool]:
    """A predicate for whole values.

    It is linear in the value for each part, since greedy search suffices if `*` is the only wildcard.
    """
    first, *rest = pattern.parts
    if not rest:
        return lambda value: value == first
    last, least = rest.pop(), len(first) + len(pattern.parts[-1])
    if not rest and not first:
        return lambda value: value.endswith(last)
    if not rest and not last:
        return lambda value: value.startswith(first)
    if not rest:
        return lambda value: value.startswith(first) and value.endswith(last) and len(value) >= least
    if not first and not last and len(rest) == 1:
        inner = rest[0]
        return lambda value: inner in value
    return lambda value: (
        value.startswith(first)
        and value.endswith(last)
        and len(value) >= least
        and _in_order(rest, value, len(first), len(value) - len(last))
    )


def within(pattern: Pattern, value: str) -> bool:
    """Whether the pattern matches a part of the value."""
    return _in_order(pattern.parts, value, 0, len(value))


def _in_order(parts: Sequence[str], value: str, start: int, end: int) -> bool:
    for part in parts:
        found = value.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True
