"""Offers the rule that would have put merged issues together. Pure.

People test it on past events before they save it.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import reduce
from typing import Final

from dashboard.view.filters import listed_query, pattern_query
from grouping.fingerprint.messages import headline
from schemas.projects import GroupingRule
from schemas.read_api import IssuePart

_MAX_TYPES: Final = 5
_MAX_WILDCARDS: Final = 12
_ENOUGH: Final = 8
"""Letters that a message's pattern must have to say something."""
_NAME: Final = 60
_VARIES: Final = "<*>"
_TOKEN: Final = re.compile(r"\s+|[^\s]+")


def offered_rule(parts: Sequence[IssuePart]) -> GroupingRule | None:
    """A rule for events like those of all parts.

    It matches their types, and the function and the words of the message that they have in common. None where
    they have neither in common: a rule by types or files alone would put together events that no person has
    looked at.
    """
    known = [part for part in parts if part.error_type]
    if len(known) < 2:
        return None
    types = sorted({part.error_type for part in known})
    message = _common_message([part.message for part in known])
    function = _common_function(part.culprit for part in known)
    if not (message or function) or len(types) > _MAX_TYPES:
        return None
    terms = [
        listed_query("type", types),
        pattern_query("message", message) if message else "",
        pattern_query("function", ["", function]) if function else "",
    ]
    match = " ".join(filter(None, terms))
    text = " ".join("".join(message).split()) if message else function
    name = f"{types[0]}: {text}"[:_NAME].strip()
    return GroupingRule(name=name, match=match, fingerprint=(name.replace("{{", "{ {"),))


def _common_message(messages: Sequence[str]) -> list[str]:
    """The common parts of all templates, in order, to be joined by wildcards; empty if they are too short."""
    common: list[str] = reduce(_in_both, [_TOKEN.findall(headline(message)) for message in messages])
    # Further lines, if there are any, are detail.
    whole = "".join(common) + _VARIES * any("\n" in message for message in messages)
    pieces = whole.split(_VARIES)
    letters = sum(character.isalpha() for character in whole)
    return pieces if letters >= _ENOUGH and len(pieces) <= _MAX_WILDCARDS + 1 else []


def _in_both(one: Sequence[str], other: Sequence[str]) -> list[str]:
    found: list[str] = []
    at = its_at = 0
    for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        if (block.a, block.b) != (at, its_at) and found[-1:] != [_VARIES]:
            found.append(_VARIES)
        found.extend(one[block.a : block.a + block.size])
        at, its_at = block.a + block.size, block.b + block.size
    return found


def _common_function(culprits: Iterable[str]) -> str:
    """The function in which all parts fail, as grouping has cleaned it; empty if there is none."""
    functions = {culprit.partition(" in ")[0] for culprit in culprits}
    function = functions.pop() if len(functions) == 1 else ""
    return "" if function == "<anonymous>" else function
