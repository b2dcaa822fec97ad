"""The cost of a rule on an event, in steps: computed before the rule runs, from its text and the event's sizes alone.

A time limit would depend on load, but a reprocessed record must get the same result.
"""

from typing import Final

from query.event_view import EventView
from query.tree import And, Compare, Filter, Has, Is, Not, Or, Pattern, Query, Text

MAX_STEPS: Final = 10_000_000
"""Steps of all rules on one event, at most tens of ms; a step is a character that a term or pattern reads."""
_LETTERS: Final = 16
"""A term or pattern costs another step per character for each so many letters of its own."""


def query_weight(query: Query) -> int:
    """Steps of a query for each character of an event."""
    match query:
        case And(items) | Or(items):
            return sum(map(query_weight, items))
        case Not(item):
            return query_weight(item)
        case Text(pattern):
            return _pattern_weight(pattern)
        case Filter(_, _, values):
            return sum(map(_pattern_weight, values))
        case Has() | Is() | Compare():
            return 1


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


def characters(view: EventView) -> int:
    """Characters of an event that queries may read."""
    texts = (view.type, view.message, view.environment, view.release, view.platform, view.os, view.os_version)
    more = (view.model, view.locale, view.user, *view.files, *view.functions, *view.tags.values())
    return sum(map(len, texts)) + sum(map(len, more))


def _pattern_weight(pattern: Pattern) -> int:
    return 1 + sum(map(len, pattern.parts)) // _LETTERS
