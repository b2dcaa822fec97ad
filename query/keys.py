"""The tags that a query names, and which keys one that nobody knows was most likely meant to be. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from query.tree import COMPARABLE, FIELDS, ISSUE_FIELDS, And, Filter, Has, Not, Or, Query

KEYS: Final = ("is", "has", *FIELDS, *ISSUE_FIELDS, *COMPARABLE)
"""The language's own keys."""
_NEAREST: Final = 3
_LEAST: Final = 0.6
"""Similarity (0 to 1, of `difflib`) from which a key is offered."""


def tag_keys(query: Query) -> list[str]:
    """The keys of the tags that the query asks for, each once."""
    return list(dict.fromkeys(_tags(query)))


def nearest(key: str, known: Iterable[str]) -> list[str]:
    """The known keys that are most like one that is not among them, whatever their case; the most similar first."""
    spelled = {name.lower(): name for name in known}
    found = get_close_matches(key.lower(), spelled, _NEAREST, _LEAST)
    return [spelled[name] for name in found]


def _tags(query: Query) -> Iterable[str]:
    match query:
        case And(items) | Or(items):
            for item in items:
                yield from _tags(item)
        case Not(item):
            yield from _tags(item)
        case Filter(key, True) | Has(key, True):
            yield key
