"""Grouping rules as the fields of a form: one group of fields a rule, in the order of their places."""

from collections.abc import Iterable
from typing import Any, Final, Protocol

from msgspec import Struct

from dashboard.http.errors import invalid
from schemas.projects import GroupingRule

MAX_GROUPS: Final = 250
_TEXTS: Final = ("place", "name", "match", "fingerprint", "inApp", "notInApp", "discard", "enabled")


class Form(Protocol):
    """The fields of a posted form."""

    def getall(self, key: str, default: list[str]) -> list[Any]:
        """Every value of a field, in the order of the page."""
        ...


class RuleFields(Struct, frozen=True, kw_only=True):
    """A rule as it is written: lists are lines of text."""

    name: str = ""
    match: str = ""
    fingerprint: str = ""
    in_app: str = ""
    not_in_app: str = ""
    discard: bool = False
    enabled: bool = True


def shown(rules: Iterable[GroupingRule]) -> list[RuleFields]:
    """The rules of a project in a form."""
    return [
        RuleFields(
            name=rule.name,
            match=rule.match,
            fingerprint="\n".join(rule.fingerprint or ()),
            in_app="\n".join(rule.in_app or ()),
            not_in_app="\n".join(rule.not_in_app or ()),
            discard=rule.discard,
            enabled=rule.enabled,
        )
        for rule in rules
    ]


def read_fields(given: Form) -> list[RuleFields]:
    """What was written, in the order that it asks for; a group without name and match is no rule. Raises Refused."""
    lists = [[str(value) for value in given.getall(name, [])] for name in _TEXTS]
    if len({len(values) for values in lists}) != 1 or len(lists[0]) > MAX_GROUPS:
        raise invalid("rules", "the form is incomplete: load the page again")
    found = []
    for number, (place, name, match, fingerprint, in_app, not_in_app, discard, enabled) in enumerate(
        zip(*lists, strict=True)
    ):
        if not (name.strip() or match.strip()):
            continue
        rule = RuleFields(
            name=name.strip(),
            match=match.strip(),
            fingerprint="\n".join(filter(str.strip, fingerprint.splitlines())),
            in_app="\n".join(in_app.split()),
            not_in_app="\n".join(not_in_app.split()),
            discard=discard == "yes",
            enabled=enabled != "no",
        )
        found.append((_place(place, number), number, rule))
    return [rule for _, _, rule in sorted(found, key=lambda one: one[:2])]


def _place(text: str, number: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else number + 1
