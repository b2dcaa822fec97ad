"""The steps that a project's rules take on an event: how many texts they search, and how long these are. Pure.

A time limit would depend on load, but a record that is processed again must get the same result.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from query.event_view import EventView
from query.tree import Filter, Has, Leaf, Query, Text, leaves

MAX_STEPS: Final = 10_000_000
"""Steps of a project's rules on one event, some ms. A step is about the cost of a search per character."""
EVENT_STEPS: Final = 1_000_000
"""Steps that each event adds to those that its project has left within a record.

Several times the cost of an event without rules."""
_CALL: Final = 120
"""Steps of a search, however short the text is."""
_LETTERS: Final = 16
"""Letters of a pattern that cost as much as another search."""


class EventSize(NamedTuple):
    """The steps of one search in the type and the message of an event, and in all names of its frames."""

    text: int
    names: int


def size_of(view: EventView) -> EventSize:
    """The size of an event. Its other fields are short."""
    names = (*view.files, *view.functions)
    return EventSize(
        2 * _CALL + len(view.type) + len(view.message), _CALL * len(names) + sum(map(len, names))
    )


class Searches(NamedTuple):
    """How many searches a rule makes in a text of the event, and in each name of its frames."""

    text: int = 0
    names: int = 0

    def steps(self, size: EventSize) -> int:
        """The steps on an event of this size."""
        return self.text * size.text + self.names * size.names


def total(some: Iterable[Searches]) -> Searches:
    """All of these searches."""
    text = names = 0
    for one in some:
        text += one.text
        names += one.names
    return Searches(text, names)


def searches_of(query: Query) -> Searches:
    """The searches of a query."""
    return total(map(_of_leaf, leaves(query)))


def pattern_searches(parts: Sequence[str]) -> int:
    """The searches of a pattern in one text: one for each part between wildcards, which takes longer among several."""
    found = [part for part in parts if part]
    return (3 * len(found) if len(found) > 1 else 1) + sum(map(len, found)) // _LETTERS


def _of_leaf(leaf: Leaf) -> Searches:
    count = 1
    if isinstance(leaf, Text):
        count = pattern_searches(leaf.pattern.parts)
    elif isinstance(leaf, Filter):
        count = sum(pattern_searches(pattern.parts) for pattern in leaf.values)
    if isinstance(leaf, Filter | Has) and not leaf.is_tag and leaf.key in {"file", "function"}:
        return Searches(names=count)
    return Searches(count)
