"""Evaluates a query on an event. This is the reference semantics; SQL is tested against it."""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter, eq, ge, gt, le, lt
from typing import Final

from query.case_folding import fold, fold_pattern
from query.event_view import EventView, IssueView
from query.patterns import fitting, within
from query.tree import ISSUE_FIELDS, And, Compare, Filter, Has, Is, Not, Or, Pattern, Query, Text
from query.values import moment_ms
from schemas.issues import ESCALATING_MS, NEW_MS

_OPERATORS: Final = {"=": eq, ">": gt, ">=": ge, "<": lt, "<=": le}

Predicate = Callable[[EventView, int], bool]
"""Whether a query matches the event and its issue; the number is the current time (Unix ms) for relative times."""

# All terms and queries of a project read the same message and type.
_folded = lru_cache(maxsize=4)(fold)


def matches(query: Query, view: EventView, now_ms: int = 0) -> bool:
    """Whether the query matches the event and its issue; `now_ms` is the current time for relative times.

    A condition on an unknown issue (`view.issue` is None) is false.
    """
    return predicate(query)(view, now_ms)


def predicate(query: Query) -> Predicate:  # noqa: PLR0911  # one a node
    """The query compiled to a function, for many events."""
    match query:
        case And(items):
            return _all([predicate(item) for item in items])
        case Or(items):
            return _any([predicate(item) for item in items])
        case Not(item):
            inner = predicate(item)
            return lambda view, now_ms: not inner(view, now_ms)
        case Text(pattern):
            return _text(fold_pattern(pattern))
        case Filter(key, is_tag, values):
            return _tag(key, values) if is_tag else _any([_field(key, pattern) for pattern in values])
        case Has(key, is_tag):
            if is_tag:
                return lambda view, _: key in view.tags
            return lambda view, _: bool(view.values(key))
        case Is(states):
            return lambda view, now_ms: (
                view.issue is not None and any(_in_state(view.issue, state, now_ms) for state in states)
            )
        case Compare(key, op):
            return lambda view, now_ms: _compares(_left(key, view), op, moment_ms(query, now_ms))


def _all(items: list[Predicate]) -> Predicate:
    match items:
        case []:
            return lambda _view, _now_ms: True
        case [one]:
            return one
        case [one, two]:
            return lambda view, now_ms: one(view, now_ms) and two(view, now_ms)
    return lambda view, now_ms: all(item(view, now_ms) for item in items)


def _any(items: list[Predicate]) -> Predicate:
    if len(items) == 1:
        return items[0]
    return lambda view, now_ms: any(item(view, now_ms) for item in items)


def _text(folded: Pattern) -> Predicate:
    return lambda view, _: within(folded, _folded(view.message)) or within(folded, _folded(view.type))


def _tag(key: str, values: tuple[Pattern, ...]) -> Predicate:
    fits = [fitting(pattern) for pattern in values]
    return lambda view, _: key in view.tags and any(one(view.tags[key]) for one in fits)


def _of_issue(key: str, pattern: Pattern) -> Predicate:
    fits, of_none = fitting(pattern), pattern.parts == ("",)
    return lambda view, _: (
        view.issue is not None and (fits(value) if (value := view.issue.value(key)) else of_none)
    )


def _field(key: str, pattern: Pattern) -> Predicate:
    if key in ISSUE_FIELDS:
        return _of_issue(key, pattern)
    if pattern.parts == ("",):
        return lambda view, _: not view.values(key)
    if key == "message":
        folded = fitting(fold_pattern(pattern))
        return lambda view, _: view.message != "" and folded(_folded(view.message))
    fits = fitting(pattern)
    if key in {"file", "function"}:
        return lambda view, _: any(map(fits, view.values(key)))
    value = attrgetter("os_version" if key == "osVersion" else key)
    return lambda view, _: (text := value(view)) != "" and fits(text)


def _in_state(issue: IssueView, state: str, now_ms: int) -> bool:
    match state:
        case "regressed":
            return issue.regressed
        case "assigned":
            return issue.assigned
        case "new":
            return issue.status == "open" and issue.first_seen > now_ms - NEW_MS
        case "escalating":
            return issue.status == "open" and issue.escalated > now_ms - ESCALATING_MS
        case "ongoing":
            others = ("regressed", "new", "escalating")
            return issue.status == "open" and not any(_in_state(issue, other, now_ms) for other in others)
        case _:
            return issue.status == state


def _compares(left: int | None, op: str, right: int) -> bool:
    return left is not None and bool(_OPERATORS[op](left, right))


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
