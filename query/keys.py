"""The tags that a query names, and suggestions for unknown keys. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from query.tree import (
    COMPARABLE,
    COUNTS,
    FIELDS,
    ISSUE_FIELDS,
    ISSUE_TIMES,
    Compare,
    Filter,
    Has,
    Is,
    Query,
    leaves,
)

KEYS: Final = ("is", "has", *FIELDS, *ISSUE_FIELDS, *COMPARABLE)
"""Keys of the language."""
_NEAREST: Final = 3
_LEAST: Final = 0.6
"""Minimum similarity (0 to 1, of `difflib`) of a suggested key."""


OF_ISSUE: Final = "is, assignee, firstRelease, events, users, firstSeen and lastSeen"
"""Keys that `asks_of_issue` finds, for messages."""


def asks_of_issue(query: Query) -> bool:
    """Whether a query has a condition on the issue, which an event that is being grouped doesn't have yet."""
    return any(
        isinstance(leaf, Is)
        or (isinstance(leaf, Compare) and leaf.key in (*ISSUE_TIMES, *COUNTS))
        or (isinstance(leaf, Filter | Has) and not leaf.is_tag and leaf.key in ISSUE_FIELDS)
        for leaf in leaves(query)
    )


def tag_keys(query: Query) -> list[str]:
    """The distinct tag keys in the query."""
    return list(
        dict.fromkeys(leaf.key for leaf in leaves(query) if isinstance(leaf, Filter | Has) and leaf.is_tag)
    )


def nearest(key: str, known: Iterable[str]) -> list[str]:
    """The known keys that are most similar to an unknown one, ignoring case; the most similar first."""
    spelled = {name.lower(): name for name in known}
    found = get_close_matches(key.lower(), spelled, _NEAREST, _LEAST)
    return [spelled[name] for name in found]
