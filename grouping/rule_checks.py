"""Validation of rules to be saved, shared by the read API, the page and `svc fingerprint --rules`.

The limits bound the cost of all rules on an event; `cost` handles rules that were saved before the limits existed.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from grouping.variables import variable_error
from query.parse import parse, terms
from query.tree import COUNTS, ISSUE_FIELDS, ISSUE_TIMES, And, Compare, Filter, Has, Is, Not, Or, Query
from schemas.errors import Detail, QueryError
from schemas.projects import GroupingRule

MAX_RULES: Final = 200
"""Maximum number of rules of a project."""
MAX_NAME: Final = 100
"""Maximum length of a rule's name."""
MAX_TERMS: Final = 500
"""Maximum number of words, phrases and filters in all `match` together; each value of a list counts."""
MAX_PATTERNS: Final = 250
"""Maximum number of patterns in all `inApp` and `notInApp` together."""
MAX_PATTERN: Final = 200
"""Maximum length of a pattern."""
MAX_WILDCARDS: Final = 16
"""Maximum number of stars in a pattern."""
MAX_ELEMENTS: Final = 20
"""Maximum number of elements of a fingerprint."""
MAX_ELEMENT: Final = 500
"""Maximum length of an element."""
MAX_CHARACTERS: Final = 50_000
"""Maximum length of all rules together."""
# Each is looked at more than once; a query is parsed in milliseconds.
_parsed = lru_cache(maxsize=256)(parse)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")


def violations(rules: Sequence[GroupingRule]) -> list[Detail]:
    """The errors of rules by field, with the rule's position; empty if they can be saved."""
    if len(rules) > MAX_RULES:
        return [Detail("rules", f"at most {MAX_RULES} rules per project, not {len(rules)}")]
    size = sum(map(_characters, rules))
    if size > MAX_CHARACTERS:
        return [Detail("rules", f"at most {MAX_CHARACTERS} characters in all rules together, not {size}")]
    details = list(_totals(rules))
    names: set[str] = set()
    for position, rule in enumerate(rules):
        if rule.name in names:
            details.append(Detail(f"rules[{position}].name", "another rule has this name"))
        names.add(rule.name)
        details += [
            Detail(_within(position, detail.field), detail.message)
            for detail in (*errors(rule), *excesses(rule))
        ]
    return details


def errors(rule: GroupingRule) -> list[Detail]:
    """The errors, by field, that keep a rule from working at all."""
    try:
        query = _parsed(rule.match)
    except QueryError as error:
        return [Detail("match", error.message)]
    if _asks_of_issue(query):
        message = "a rule sees the event before it has an issue: is, assignee, events, users, firstSeen and lastSeen aren't known"
        return [Detail("match", message)]
    if not (rule.fingerprint or rule.in_app or rule.not_in_app or rule.discard):
        return [Detail("", "sets nothing: give fingerprint, inApp, notInApp or discard")]
    return []


def excesses(rule: GroupingRule) -> Iterator[Detail]:
    """Exceeded limits and unknown names; rules saved before these checks existed run nevertheless."""
    if not 1 <= len(rule.name) <= MAX_NAME or _UNPRINTABLE.search(rule.name):
        yield Detail("name", f"1 to {MAX_NAME} characters, no control characters")
    elements = rule.fingerprint or ()
    if len(elements) > MAX_ELEMENTS:
        yield Detail("fingerprint", f"at most {MAX_ELEMENTS} elements, not {len(elements)}")
    for index, element in enumerate(elements[:MAX_ELEMENTS]):
        if len(element) > MAX_ELEMENT:
            yield Detail(f"fingerprint[{index}]", f"at most {MAX_ELEMENT} characters, not {len(element)}")
        elif wrong := variable_error(element):
            yield Detail(f"fingerprint[{index}]", wrong)
    yield from _pattern_excess("inApp", rule.in_app or ())
    yield from _pattern_excess("notInApp", rule.not_in_app or ())


def _pattern_excess(field: str, patterns: Sequence[str]) -> Iterator[Detail]:
    """The first of a list is enough: the others are mostly of the same kind."""
    for index, pattern in enumerate(patterns):
        if not 1 <= len(pattern) <= MAX_PATTERN or pattern.count("*") > MAX_WILDCARDS:
            yield Detail(
                f"{field}[{index}]", f"1 to {MAX_PATTERN} characters with at most {MAX_WILDCARDS} stars"
            )
            return


def _totals(rules: Sequence[GroupingRule]) -> Iterator[Detail]:
    patterns = sum(len(rule.in_app or ()) + len(rule.not_in_app or ()) for rule in rules)
    if patterns > MAX_PATTERNS:
        message = f"at most {MAX_PATTERNS} patterns in all inApp and notInApp together, not {patterns}"
        yield Detail("rules", message)
    terms = sum(map(_terms_of, rules))
    if terms > MAX_TERMS:
        yield Detail("rules", f"at most {MAX_TERMS} terms in all match together, not {terms}")


def _terms_of(rule: GroupingRule) -> int:
    try:
        return terms(_parsed(rule.match))
    except QueryError:
        return 0


def _asks_of_issue(query: Query) -> bool:
    match query:
        case And(items) | Or(items):
            return any(map(_asks_of_issue, items))
        case Not(item):
            return _asks_of_issue(item)
        case Is():
            return True
        case Compare(key):
            return key in {*ISSUE_TIMES, *COUNTS}
        case Filter(key, False) | Has(key, False):
            return key in ISSUE_FIELDS
    return False


def _characters(rule: GroupingRule) -> int:
    lists = (*(rule.fingerprint or ()), *(rule.in_app or ()), *(rule.not_in_app or ()))
    return len(rule.name) + len(rule.match) + sum(map(len, lists))


def _within(position: int, field: str) -> str:
    return f"rules[{position}].{field}" if field else f"rules[{position}]"
