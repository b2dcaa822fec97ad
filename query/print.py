"""Prints a tree as canonical text: `parse(to_text(query)) == query` for every tree in normal form."""

from query.patterns import write_literal, write_pattern
from query.tree import And, Compare, Filter, Has, Is, Not, Or, Pattern, Query, Text
from query.values import write_value


def to_text(query: Query) -> str:  # noqa: PLR0911  # one a node
    """The query as text: a space for AND, values in quotation marks, lists in brackets."""
    match query:
        case And(items):
            return " ".join(f"({to_text(item)})" if isinstance(item, Or) else to_text(item) for item in items)
        case Or(items):
            return " OR ".join(map(to_text, items))
        case Not(item):
            return f"-({to_text(item)})" if isinstance(item, And | Or) else f"-{to_text(item)}"
        case Text(pattern):
            return _quoted(pattern)
        case Filter(key, is_tag, values):
            return f"{_key(key, is_tag)}:{_values(values)}"
        case Has(key, is_tag):
            return f"has:{_key(key, is_tag)}"
        case Is(states):
            return f"is:{states[0]}" if len(states) == 1 else f"is:[{', '.join(states)}]"
        case Compare(key, op):
            return f"{key}:{'' if op == '=' else op}{write_value(query)}"


def _quoted(pattern: Pattern) -> str:
    return f'"{write_pattern(pattern)}"'


def _key(key: str, is_tag: bool) -> str:
    return f'tags["{write_literal(key)}"]' if is_tag else key


def _values(values: tuple[Pattern, ...]) -> str:
    return _quoted(values[0]) if len(values) == 1 else f"[{', '.join(map(_quoted, values))}]"
