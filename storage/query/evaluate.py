"""The meaning of a query: whether it holds for one event. SQL is tested against this."""

from operator import eq, ge, gt, le, lt
from typing import Final

from storage.query.case import fold, fold_pattern
from storage.query.patterns import glob, within
from storage.query.tree import And, Compare, Filter, Has, Is, Not, Or, Pattern, Query, Text
from storage.query.values import moment_ms
from storage.query.view import EventView, IssueView

_OPERATORS: Final = {"=": eq, ">": gt, ">=": ge, "<": lt, "<=": le}


def matches(query: Query, view: EventView, now_ms: int = 0) -> bool:  # noqa: PLR0911  # one a node
    """Whether the query holds for the event and its issue; `now_ms` is what `-24h` counts from.

    What asks about an issue that isn't known (`view.issue` is None) doesn't hold.
    """
    match query:
        case And(items):
            return all(matches(item, view, now_ms) for item in items)
        case Or(items):
            return any(matches(item, view, now_ms) for item in items)
        case Not(item):
            return not matches(item, view, now_ms)
        case Text(pattern):
            folded = fold_pattern(pattern)
            return within(folded, fold(view.message)) or within(folded, fold(view.type))
        case Filter(key, is_tag, values):
            return any(_fits(pattern, key, is_tag, view) for pattern in values)
        case Has(key, is_tag):
            return key in view.tags if is_tag else bool(view.values(key))
        case Is(states):
            return view.issue is not None and any(_in_state(view.issue, state) for state in states)
        case Compare(key, op):
            left = _left(key, view)
            return left is not None and bool(_OPERATORS[op](left, moment_ms(query, now_ms)))


def _fits(pattern: Pattern, key: str, is_tag: bool, view: EventView) -> bool:
    if is_tag:
        return key in view.tags and glob(pattern, view.tags[key])
    values = view.values(key)
    if pattern.parts == ("",):
        return not values
    if key == "message":
        return any(glob(fold_pattern(pattern), fold(value)) for value in values)
    return any(glob(pattern, value) for value in values)


def _in_state(issue: IssueView, state: str) -> bool:
    if state == "regressed":
        return issue.regressed
    return issue.assigned if state == "assigned" else issue.status == state


def _left(key: str, view: EventView) -> int | None:
    if key == "timestamp":
        return view.timestamp
    if view.issue is None:
        return None
    match key:
        case "firstSeen":
            return view.issue.first_seen
        case "lastSeen":
            return view.issue.last_seen
        case "events":
            return view.issue.events
        case _:
            return view.issue.users
