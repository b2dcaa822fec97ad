"""The tree of a query. Every node is a predicate over one event and the issue that the event belongs to.

Trees are in normal form: no And directly in an And, no Or in an Or, two items at least (but for
`EVERYTHING`), patterns as `Pattern` describes. `parse` gives only such trees, and `to_text` writes each so
that `parse` gives it back.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

Comparison = Literal["=", ">", ">=", "<", "<="]
IssueState = Literal["open", "resolved", "ignored", "regressed", "assigned", "new", "ongoing", "escalating"]

STATES: Final = ("open", "resolved", "ignored", "regressed", "assigned", "new", "ongoing", "escalating")
"""States for `is:`."""

FIELDS: Final = (
    "environment",
    "release",
    "platform",
    "os",
    "osVersion",
    "model",
    "locale",
    "sdk",
    "user",
    "type",
    "message",
    "file",
    "function",
)
"""Keys that filter by a field of the event."""

ISSUE_FIELDS: Final = ("assignee", "firstRelease")
"""Keys that filter by a field of the issue; keys in none of these lists are tags."""

ISSUE_TIMES: Final = ("firstSeen", "lastSeen")
COUNTS: Final = ("events", "users")
TIMES: Final = (*ISSUE_TIMES, "timestamp")
COMPARABLE: Final = (*TIMES, *COUNTS)
"""Keys for comparisons. `timestamp` is the event's time, the others are lifetime values of the issue."""

RESERVED: Final = frozenset((*FIELDS, *ISSUE_FIELDS, *COMPARABLE, "is", "has"))
"""Reserved keys: a tag of the same name is written as `tags[key]`."""


class Pattern(Struct, frozen=True):
    """Literal parts with a wildcard between each two: `("a", "")` is `a*`. Inner parts are never empty."""

    parts: tuple[str, ...]

    @property
    def is_literal(self) -> bool:
        """Whether the pattern has no wildcard."""
        return len(self.parts) == 1


class And(Struct, frozen=True):
    """A conjunction; without items it matches everything."""

    items: tuple["Query", ...]


class Or(Struct, frozen=True):
    """A disjunction."""

    items: tuple["Query", ...]


class Not(Struct, frozen=True):
    """A negation."""

    item: "Query"


class Text(Struct, frozen=True):
    """A word or phrase in type or message, ignoring case. The pattern neither starts nor ends with a wildcard."""

    pattern: Pattern


class Filter(Struct, frozen=True):
    """A field or tag that equals one of the patterns; without a value (`""`) the field is absent."""

    key: str
    is_tag: bool
    values: tuple[Pattern, ...]


class Has(Struct, frozen=True):
    """A field that isn't empty, or a tag that was sent."""

    key: str
    is_tag: bool


class Is(Struct, frozen=True):
    """An issue in one of the states."""

    states: tuple[IssueState, ...]


class Compare(Struct, frozen=True):
    """A comparison of a time or count. Times are Unix ms or, with `ago`, ms before now."""

    key: str
    op: Comparison
    value: int
    ago: bool = False


Query = And | Or | Not | Text | Filter | Has | Is | Compare

EVERYTHING: Final = And(())
"""The tree of the empty text."""


Leaf = Text | Filter | Has | Is | Compare


def leaves(query: Query) -> Iterator[Leaf]:
    """The predicates that a query joins."""
    match query:
        case And(items) | Or(items):
            for item in items:
                yield from leaves(item)
        case Not(item):
            yield from leaves(item)
        case _:
            yield query


def conjuncts(query: Query) -> tuple[Query, ...]:
    """The predicates that must all hold."""
    return query.items if isinstance(query, And) else (query,)
