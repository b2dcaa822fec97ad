"""Grouping rules as form fields: a group of fields per rule, ordered by position."""

from typing import Any, Final, Protocol

from dashboard.http.http_errors import invalid
from grouping.rule_checks import MAX_RULES
from schemas.projects import GroupingRule

_FIELDS: Final = ("position", "name", "match", "fingerprint", "inApp", "notInApp", "discard", "enabled")


class Form(Protocol):
    """The fields of a posted form."""

    def getall(self, key: str, default: list[str]) -> list[Any]:
        """All values of a field, in page order."""
        ...


def read_rules(form: Form) -> list[GroupingRule]:
    """The entered rules by position, without groups that lack name and match. Raises HttpError."""
    lists = [[str(value) for value in form.getall(name, [])] for name in _FIELDS]
    if len({len(values) for values in lists}) != 1 or len(lists[0]) > MAX_RULES + 1:
        raise invalid("rules", "the form is incomplete: reload the page")
    rules = []
    for index, (position, name, match, fingerprint, in_app, not_in_app, discard, enabled) in enumerate(
        zip(*lists, strict=True)
    ):
        if not (name.strip() or match.strip()):
            continue
        rule = GroupingRule(
            name=name.strip(),
            match=match.strip(),
            fingerprint=tuple(filter(str.strip, fingerprint.splitlines())) or None,
            in_app=tuple(in_app.split()) or None,
            not_in_app=tuple(not_in_app.split()) or None,
            discard=discard == "yes",
            enabled=enabled != "no",
        )
        rules.append((_position(position, index), index, rule))
    return [rule for _, _, rule in sorted(rules, key=lambda ordered: ordered[:2])]


def _position(text: str, index: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else index + 1
