"""Compiles a query tree to SQL.

The text contains nothing of the query: keys, values and patterns are parameters. `event_condition` is over
the columns of `events`, `issue_condition` over those of `issues` for a tree about issues only. `split`
separates a conjunction into these two. An issue condition nested in an event condition becomes a subquery on
the fingerprints of the matching issues.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from query.case_folding import fold_pattern, variants
from query.evaluate import matches
from query.event_view import EventView
from query.tree import (
    COUNTS,
    EVERYTHING,
    ISSUE_FIELDS,
    And,
    Compare,
    Filter,
    Has,
    Is,
    Not,
    Or,
    Pattern,
    Query,
    Text,
    conjuncts,
)
from query.values import moment_ms
from schemas.ids import user_hash
from schemas.issues import ESCALATING_MS, NEW_MS

PAIRS: Final = "arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags))"
"""Must equal the expression of the index on tags, or ClickHouse doesn't use the index."""
_SNOOZE_END: Final = "parseDateTime64BestEffortOrZero(JSONExtractString(ignore_until, 'time'), 3, 'UTC')"
STATUS: Final = (
    f"if(status = 'ignored' AND JSONHas(ignore_until, 'time') AND {_SNOOZE_END} <= now64(3, 'UTC'),"
    " 'open', status)"
)
"""The column `status` of `issues`. A timed snooze ends on read; the record itself changes with the next
event."""

_COLUMNS: Final = {
    "osVersion": "os_version",
    "user": "user_id",
    "type": "error_type",
    "firstRelease": "first_release",
}
_ARRAYS: Final = {"file": "files", "function": "functions"}
_ISSUE_COLUMNS: Final = {
    "firstSeen": "first_seen",
    "lastSeen": "last_seen",
    "events": "events",
    "users": "users",
}
_MIN_MULTI_SEARCH: Final = 8
"""From this many words on, one search for all of them is cheaper than a search for each."""
_LIKE_SPECIAL: Final = re.compile(r"[\\%_]")


class Parameters:
    """Collects the values of a statement; its text has only placeholders such as `{p0:String}`."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self._placeholders: dict[tuple[str, str], str] = {}

    def add(self, value: object, kind: str) -> str:
        """The placeholder of a value; `kind` is a ClickHouse type. Equal values share a placeholder."""
        key = (kind, repr(value))
        if key not in self._placeholders:
            name = f"p{len(self.values)}"
            self.values[name] = value
            self._placeholders[key] = f"{{{name}:{kind}}}"
        return self._placeholders[key]

    def moment(self, ms: int) -> str:
        """The placeholder of a Unix time in milliseconds, comparable with a DateTime64 column."""
        return self.add(f"{ms // 1000}.{ms % 1000:03}", "DateTime64(3, 'UTC')")


class SqlScope(Struct, frozen=True):
    """The context of a condition: the project, the current time (Unix ms) and the statement's parameters."""

    project: int
    now_ms: int
    parameters: Parameters


def about_issue(query: Query) -> bool:
    """Whether the query has conditions, all of them on the issue."""
    match query:
        case And(items) | Or(items):
            return bool(items) and all(map(about_issue, items))
        case Not(item):
            return about_issue(item)
        case Compare(key):
            return key != "timestamp"
        case Filter(key, False) | Has(key, False):
            return key in ISSUE_FIELDS
        case _:
            return isinstance(query, Is)


def split(query: Query) -> tuple[Query, Query]:
    """The query's conditions on the issue and those on the event; their conjunction is the query."""
    items = conjuncts(query)
    return _all([i for i in items if about_issue(i)]), _all([i for i in items if not about_issue(i)])


def _all(items: Sequence[Query]) -> Query:
    return items[0] if len(items) == 1 else And(tuple(items)) if items else EVERYTHING


def event_condition(query: Query, scope: SqlScope) -> str:
    """A condition over a row of `events`."""
    if about_issue(query):
        return _membership(query, scope)
    match query:
        case And(()):
            return "1"
        case And(items):
            return _all_hold(_grouped(items, And), scope)
        case Or(items):
            return _one_holds(_grouped(items, Or), scope)
        case Not(item):
            return f"NOT {event_condition(item, scope)}"
        case _:
            return _leaf(query, scope)


def issue_condition(query: Query, scope: SqlScope) -> str:
    """A condition over a row of `issues`, for a query that is `about_issue` or EVERYTHING."""
    match query:
        case And(()):
            return "1"
        case And(items) | Or(items):
            operator = " AND " if isinstance(query, And) else " OR "
            return f"({operator.join(issue_condition(item, scope) for item in items)})"
        case Not(item):
            return f"NOT {issue_condition(item, scope)}"
        case Is(states):
            return f"({' OR '.join(_state(state, scope) for state in states)})"
        case Compare(key, op):
            return f"({_ISSUE_COLUMNS[key]} {op} {_value(query, scope)})"
        case Filter() | Has():
            return _leaf(query, scope)
        case _:
            raise ValueError(f"{type(query).__name__} is no condition on an issue")


def current_issues(scope: SqlScope) -> str:
    """The newest row of each issue of the project, without merged issues."""
    project = scope.parameters.add(scope.project, "UInt32")
    return f"issues FINAL WHERE project_id = {project} AND deleted = 0 AND merged_into = 0"


def _grouped(items: tuple[Query, ...], kind: type[And] | type[Or]) -> Sequence[Query]:
    """The items, with all conditions on the issue combined.

    So they need a single subquery on `issues`.
    """
    about = tuple(item for item in items if about_issue(item))
    others = (item for item in items if not about_issue(item))
    return [*others, *([kind(about)] if len(about) > 1 else about)]


def _all_hold(items: Sequence[Query], scope: SqlScope) -> str:
    """A conjunction; many excluded words are combined into one search."""
    unwanted = [item.item for item in items if isinstance(item, Not) and _is_word(item.item)]
    if len(unwanted) < _MIN_MULTI_SEARCH:
        return _joined(" AND ", items, scope)
    remaining = [item for item in items if not (isinstance(item, Not) and _is_word(item.item))]
    conditions = [f"NOT {_one_holds(unwanted, scope)}", *(event_condition(item, scope) for item in remaining)]
    return f"({' AND '.join(conditions)})"


def _one_holds(items: Sequence[Query], scope: SqlScope) -> str:
    """A disjunction; many words are combined into one search, and several tags into one condition."""
    words, tags = [item for item in items if _is_word(item)], [item for item in items if _is_pairs(item)]
    remaining = list(items)
    conditions = []
    if len(words) >= _MIN_MULTI_SEARCH:
        remaining = [item for item in remaining if not _is_word(item)]
        conditions.append(_any_word(words, scope))
    if len(tags) > 1:
        remaining = [item for item in remaining if not _is_pairs(item)]
        conditions.append(_any_pair(tags, scope))
    return f"({' OR '.join([*conditions, *(event_condition(item, scope) for item in remaining)])})"


def _joined(operator: str, items: Iterable[Query], scope: SqlScope) -> str:
    return f"({operator.join(event_condition(item, scope) for item in items)})"


def _is_word(query: Query) -> bool:
    """Whether the query is text without wildcards whose case folding equals the database's `lower`."""
    if not isinstance(query, Text) or len(query.pattern.parts) > 1:
        return False
    folded = fold_pattern(query.pattern).parts[0]
    return folded != "" and all(variants(character) == character for character in folded)


def _any_word(words: Iterable[Query], scope: SqlScope) -> str:
    """One search for any of the words; it costs little more than a search for one."""
    folded = [fold_pattern(word.pattern).parts[0] for word in words if isinstance(word, Text)]
    wanted = scope.parameters.add(list(dict.fromkeys(folded)), "Array(String)")
    return f"(multiSearchAny(lower(message), {wanted}) OR multiSearchAny(lower(error_type), {wanted}))"


def _is_pairs(query: Query) -> bool:
    """Whether the query is for literal values of a tag.

    If so, the index on pairs of key and value applies.
    """
    return (
        isinstance(query, Filter)
        and query.is_tag
        and "=" not in query.key
        and all(value.is_literal and "=" not in value.parts[0] for value in query.values)
    )


def _any_pair(tags: Iterable[Query], scope: SqlScope) -> str:
    pairs = [f"{tag.key}={value.parts[0]}" for tag in tags if isinstance(tag, Filter) for value in tag.values]
    return f"hasAny({PAIRS}, {scope.parameters.add(list(dict.fromkeys(pairs)), 'Array(String)')})"


def _membership(query: Query, scope: SqlScope) -> str:
    # An event whose issue doesn't exist yet matches if the evaluator accepts an event without an issue.
    unknown = matches(query, EventView(), scope.now_ms)
    condition = issue_condition(Not(query) if unknown else query, scope)
    fitting = f"SELECT arrayJoin(fingerprints) FROM {current_issues(scope)} AND {condition}"
    return f"(fingerprint {'NOT IN' if unknown else 'IN'} ({fitting}))"


def _leaf(query: Query, scope: SqlScope) -> str:
    match query:
        case Text(pattern):
            return _text(fold_pattern(pattern), scope)
        case Filter(values=[_, _, *_]) if _is_pairs(query):
            return f"({_any_pair([query], scope)})"
        case Filter(key, is_tag, values):
            conditions = [(_tag if is_tag else _field)(key, value, scope) for value in values]
            return f"({' OR '.join(conditions)})"
        case Has(key, True):
            return f"mapContains(tags, {scope.parameters.add(key, 'String')})"
        case Has(key, False):
            return f"NOT {_field(key, Pattern(('',)), scope)}"
        case Compare(_, op):
            return f"(ts {op} {_value(query, scope)})"
        case _:
            raise ValueError(f"{type(query).__name__} is no condition on an event")


def _text(folded: Pattern, scope: SqlScope) -> str:
    if folded.parts == ("",):
        return "1"
    around = Pattern(("", *folded.parts, ""))
    return f"({_folded_like('message', around, scope)} OR {_folded_like('error_type', around, scope)})"


def _field(key: str, pattern: Pattern, scope: SqlScope) -> str:
    if key in _ARRAYS:
        return _element(_ARRAYS[key], pattern, scope)
    column = _COLUMNS.get(key, key)
    if not any(pattern.parts):
        return f"({column} {'=' if pattern.is_literal else '!='} '')"
    if key == "message":
        return _folded_like(column, fold_pattern(pattern), scope)
    if not pattern.is_literal:
        return f"({column} LIKE {_like(pattern, scope)})"
    equal = f"{column} = {scope.parameters.add(pattern.parts[0], 'String')}"
    if key == "user":
        # The index is on the hash.
        hashed = scope.parameters.add(user_hash(scope.project, pattern.parts[0]), "UInt64")
        return f"(user_hash = {hashed} AND {equal})"
    return f"({equal})"


def _element(column: str, pattern: Pattern, scope: SqlScope) -> str:
    if not any(pattern.parts):
        return f"({'NOT ' if pattern.is_literal else ''}arrayExists(x -> x != '', {column}))"
    if pattern.is_literal:
        return f"has({column}, {scope.parameters.add(pattern.parts[0], 'String')})"
    return f"arrayExists(x -> x LIKE {_like(pattern, scope)}, {column})"


def _tag(key: str, pattern: Pattern, scope: SqlScope) -> str:
    name = scope.parameters.add(key, "String")
    if not pattern.is_literal:
        fits = f" AND tags[{name}] LIKE {_like(pattern, scope)}" if any(pattern.parts) else ""
        return f"(mapContains(tags, {name}){fits})"
    value = pattern.parts[0]
    pair = f"has({PAIRS}, {scope.parameters.add(f'{key}={value}', 'String')})"
    if "=" in key or "=" in value:
        # The pair is ambiguous: `a=b` under `c`, or `b=c` under `a`.
        return f"({pair} AND mapContains(tags, {name}) AND tags[{name}] = {scope.parameters.add(value, 'String')})"
    return pair


def _like(pattern: Pattern, scope: SqlScope) -> str:
    escaped = (_LIKE_SPECIAL.sub(r"\\\g<0>", part) for part in pattern.parts)
    return scope.parameters.add("%".join(escaped), "String")


def _folded_like(column: str, folded: Pattern, scope: SqlScope) -> str:
    """A case-insensitive match of the column. The database's `lower` handles only ASCII."""
    if all(variants(character) == character for part in folded.parts for character in part):
        return f"(lower({column}) LIKE {_like(folded, scope)})"
    middle = ".*".join("".join(map(_class, part)) for part in folded.parts)
    anchored = rf"(?s)\A{middle}\z"
    return f"match(lower({column}), {scope.parameters.add(anchored, 'String')})"


def _class(folded: str) -> str:
    same = variants(folded)
    return f"[{same}]" if len(same) > 1 else re.escape(same)


def _state(state: str, scope: SqlScope) -> str:
    match state:
        case "regressed":
            return "regressed = 1"
        case "assigned":
            return "assignee != ''"
        case "new":
            return f"({STATUS} = 'open' AND first_seen > {scope.parameters.moment(scope.now_ms - NEW_MS)})"
        case "escalating":
            return (
                f"({STATUS} = 'open' AND escalated > {scope.parameters.moment(scope.now_ms - ESCALATING_MS)})"
            )
        case "ongoing":
            others = " OR ".join(_state(other, scope) for other in ("regressed", "new", "escalating"))
            return f"({STATUS} = 'open' AND NOT ({others}))"
        case _:
            return f"{STATUS} = {scope.parameters.add(state, 'String')}"


def rank(scope: SqlScope) -> str:
    """How much an issue needs a look, for a row of `issues`: 3 escalating, 2 regressed, 1 new, else 0."""
    ranked = [("escalating", 3), ("regressed", 2), ("new", 1)]
    cases = [f"{_state('open', scope)} AND {_state(state, scope)}, {number}" for state, number in ranked]
    return f"multiIf({', '.join(cases)}, 0)"


def _value(compare: Compare, scope: SqlScope) -> str:
    value = moment_ms(compare, scope.now_ms)
    return scope.parameters.add(value, "UInt64") if compare.key in COUNTS else scope.parameters.moment(value)
