"""Validation of rules to be saved, shared by the read API, the page and `svc fingerprint --rules`.

The limit keeps a project's record and the compiling of its rules small. `grouping.steps` bounds the steps of
rules as they run on events.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from grouping.variables import variable_error
from query.keys import OF_ISSUE, asks_of_issue
from query.parse import parse
from schemas.errors import Detail, QueryError
from schemas.projects import GroupingRule

MAX_RULES: Final = 100
"""Maximum number of rules of a project."""
MAX_CHARACTERS: Final = 1_000
"""Maximum length of a rule: of its name, its match, its elements and its patterns together.

Each element and each pattern counts one more."""
MAX_NAME: Final = 100
"""Maximum length of a rule's name, which labels the rule's groups."""
# Each is looked at more than once; a query is parsed in milliseconds.
_parsed = lru_cache(maxsize=256)(parse)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")


def violations(rules: Sequence[GroupingRule]) -> list[Detail]:
    """The errors of rules by field, with the rule's position; empty if they can be saved."""
    if len(rules) > MAX_RULES:
        return [Detail("rules", f"at most {MAX_RULES} rules per project, not {len(rules)}")]
    details: list[Detail] = []
    names: set[str] = set()
    for position, rule in enumerate(rules):
        if rule.name in names:
            details.append(Detail(f"rules[{position}].name", "another rule has this name"))
        names.add(rule.name)
        found = _excess(rule) or [*errors(rule), *_wrong_texts(rule)]
        details += [Detail(_within(position, detail.field), detail.message) for detail in found]
    return details


def errors(rule: GroupingRule) -> list[Detail]:
    """The errors, by field, that keep a rule from working at all."""
    try:
        query = _parsed(rule.match)
    except QueryError as error:
        return [Detail("match", error.message)]
    if asks_of_issue(query):
        return [Detail("match", f"a rule sees the event before it has an issue: {OF_ISSUE} aren't known")]
    if not (rule.fingerprint or rule.in_app or rule.not_in_app or rule.discard):
        return [Detail("", "sets nothing: give fingerprint, inApp, notInApp or discard")]
    return []


def _excess(rule: GroupingRule) -> list[Detail]:
    """The limit, if the rule exceeds it; nothing of such a rule is read."""
    listed = (*(rule.fingerprint or ()), *(rule.in_app or ()), *(rule.not_in_app or ()))
    size = len(rule.name) + len(rule.match) + sum(map(len, listed)) + len(listed)
    if size <= MAX_CHARACTERS:
        return []
    return [Detail("", f"at most {MAX_CHARACTERS:,} characters in all its fields together, not {size:,}")]


def _wrong_texts(rule: GroupingRule) -> Iterator[Detail]:
    if not 1 <= len(rule.name) <= MAX_NAME or _UNPRINTABLE.search(rule.name):
        yield Detail("name", f"1 to {MAX_NAME} characters, no control characters")
    for index, element in enumerate(rule.fingerprint or ()):
        if wrong := variable_error(element):
            yield Detail(f"fingerprint[{index}]", wrong)
    for field, patterns in (("inApp", rule.in_app or ()), ("notInApp", rule.not_in_app or ())):
        if "" in patterns:
            yield Detail(f"{field}[{patterns.index('')}]", "an empty pattern matches nothing")


def _within(position: int, field: str) -> str:
    return f"rules[{position}].{field}" if field else f"rules[{position}]"
