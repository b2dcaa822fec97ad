"""The cost of rules on an event, in steps: computed before a rule runs, from its text and the event's sizes alone.

A time limit would depend on load, but a reprocessed record must get the same result.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from query.event_view import EventView
from query.tree import FIELDS, And, Compare, Filter, Has, Is, Not, Or, Query, Text

MAX_STEPS: Final = 10_000_000
"""Steps of a project's rules on one event, some ms. A step is what one character costs that a search passes, about a nanosecond."""
EVENT_STEPS: Final = 1_000_000
"""Steps that each event adds to what a project has left within a record: several times what the event costs without rules, and
more than rules at the limits take on most events."""
_CALL: Final = 120
"""Steps of an attempt to match, however short the text is."""
_LETTERS: Final = 16
"""A term or pattern costs another step per character for each so many letters of its own."""
_FOLD: Final = 10
"""Steps per character of a text that isn't ASCII, to ignore its case."""

NAME_BYTES: Final = 11
"""Bytes of JSON that a file or function takes at least, with its key."""

Cost = Mapping[str, tuple[int, int]]
"""Steps for each character and for each value of an event, by what is read: a field, `tags`, `text` (type and message)."""


def query_cost(query: Query) -> Cost:
    """The cost of a query."""
    match query:
        case And(items) | Or(items):
            return added(map(query_cost, items))
        case Not(item):
            return query_cost(item)
        case Text(pattern):
            return {"text": pattern_cost(pattern.parts), "folded": (_FOLD, 0)}
        case Filter(key, is_tag, values):
            cost = total(pattern_cost(pattern.parts) for pattern in values)
            return {"tags" if is_tag else key: cost} | ({"folded": (_FOLD, 0)} if key == "message" else {})
        case Has(key, is_tag):
            return {"tags" if is_tag else key: (0, _CALL)}
        case Is() | Compare():
            return {"": (0, _CALL)}


def added(costs: Iterable[Cost]) -> Cost:
    """The cost of several queries on one event, whose text is folded once."""
    sums: dict[str, tuple[int, int]] = {}
    for cost in costs:
        for field, one in cost.items():
            sums[field] = total((one, sums.get(field, (0, 0))))
    return sums | ({"folded": (_FOLD, 0)} if "folded" in sums else {})


def total(costs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The sum of steps per character and per value."""
    characters = values = 0
    for by_character, by_value in costs:
        characters += by_character
        values += by_value
    return characters, values


def pattern_cost(parts: Sequence[str], letters: int = _LETTERS) -> tuple[int, int]:
    """Steps of a pattern per character and per value of what it is matched with: each text between wildcards is a search."""
    searches = sum(map(bool, parts))
    return 1 + sum(map(len, parts)) // letters, _CALL * (1 if searches <= 1 else 3 * searches)


class EventSizes(dict[str, tuple[int, int]]):
    """The characters and values of an event that a query may read, by the keys of a `Cost`. `view` is called once one is needed."""

    def __init__(self, view: Callable[[], EventView]) -> None:
        super().__init__()
        self._view = view

    def __missing__(self, field: str) -> tuple[int, int]:
        size = self[field] = self._count(field)
        return size

    def _count(self, field: str) -> tuple[int, int]:
        view = self._view()
        match field:
            case "text":
                return len(view.type) + len(view.message), 2
            case "folded":
                return sum([len(text) for text in (view.type, view.message) if not text.isascii()]), 0
            case "tags":
                return sum(map(len, view.tags.values())), 1
            case "file" | "function":
                values = view.files if field == "file" else view.functions
                return sum(map(len, values)), len(values)
        return sum(map(len, view.values(field))) if field in FIELDS else 0, 1


def steps(cost: Cost, sizes: EventSizes) -> int:
    """The steps of a cost on an event of these sizes."""
    count = 0
    for field, (by_character, by_value) in cost.items():
        characters, values = sizes[field]
        count += by_character * characters + by_value * values
    return count


def most_steps(costs: Iterable[Cost]) -> tuple[int, int]:
    """Steps at most of costs on an event: for each byte of its JSON, and besides. A file or function takes `NAME_BYTES` at least."""
    by_byte = besides = 0
    for cost in costs:
        for field, (by_character, by_value) in cost.items():
            if field in {"file", "function"}:
                by_byte += by_character + by_value // NAME_BYTES + 1
            else:
                by_byte += by_character
                besides += 2 * by_value
    return by_byte, besides


def asks_of_error_alone(query: Query) -> bool:
    """Whether the result depends on platform and error alone."""
    match query:
        case And(items) | Or(items):
            return all(map(asks_of_error_alone, items))
        case Not(item):
            return asks_of_error_alone(item)
        case Text():
            return True
        case Filter(key, is_tag) | Has(key, is_tag):
            return not is_tag and key in {"type", "message", "file", "function", "platform"}
        case Is() | Compare():
            return False
