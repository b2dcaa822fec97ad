"""Notification rules as form fields: the input is a rule of the read API, and is checked as one."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from dashboard.http.http_errors import invalid
from dashboard.http.violations import detail_of
from dashboard.pages.rule_form import Form
from notify.rule_input import NotificationRuleInput, problems
from schemas.errors import Detail

MAX_TYPED: Final = 250
_TEXTS: Final = ("id", "name", "query", "users", "digestMinutes", "mostPerHour")
_SAMPLES: Final = {"name": "x", "causes": ["created"], "channels": ["x"]}
"""Values that replace a faulty field while the others are checked."""
_NEW: Final = {"causes", "enabled", "withoutContent"}
"""Fields that a form has before anything is typed."""


class TypedRule(Struct, frozen=True):
    """A rule as typed: the fields of `NotificationRuleInput` by their names in JSON, without empty ones."""

    fields: dict[str, Any]
    is_removed: bool = False


def read_typed(form: Form) -> list[TypedRule]:
    """The typed rules in page order, without a new one that is empty. Raises HttpError."""
    keys = [str(key) for key in form.getall("rule", [])]
    if not keys or len(keys) > MAX_TYPED:
        raise invalid("rules", "the form is incomplete: reload the page")
    rules = [TypedRule(_fields(form, key), bool(form.getall(f"{key}.remove", []))) for key in keys]
    return [rule for rule in rules if not rule.fields.keys() <= _NEW]


def _fields(form: Form, key: str) -> dict[str, Any]:
    def text(name: str) -> str:
        return "".join(map(str, form.getall(f"{key}.{name}", [])[:1])).strip()

    def words(name: str) -> list[str]:
        return " ".join(map(str, form.getall(f"{key}.{name}", []))).replace(",", " ").split()

    quiet: dict[str, Any] = {name: text(f"quiet.{name}") for name in ("start", "end", "zone")}
    quiet["days"] = words("quiet.days")
    if quiet["days"] and not (quiet["start"] or quiet["end"]):
        quiet |= {"start": "00:00", "end": "00:00"}
    is_quiet = quiet["start"] or quiet["end"]
    fields: dict[str, Any] = {name: text(name) for name in _TEXTS} | {
        "causes": words("causes"),
        "channels": words("channels"),
        "to": [line.strip() for line in text("to").splitlines() if line.strip()],
        "quiet": {name: value for name, value in quiet.items() if value} if is_quiet else None,
        "withoutContent": bool(text("withoutContent")),
    }
    filled = {name: value for name, value in fields.items() if value}
    return filled if text("enabled") else filled | {"enabled": False}


def checked(typed: list[dict[str, Any]]) -> tuple[list[NotificationRuleInput], list[Detail]]:
    """The rules, and every fault of them, as the read API finds them. With faults the rules are of no use."""
    inputs, details = list[NotificationRuleInput](), list[Detail]()
    for number, fields in enumerate(typed):
        rest = fields
        # Each round clears one field of its fault.
        for _ in NotificationRuleInput.__struct_fields__:
            try:
                inputs.append(msgspec.convert(rest, NotificationRuleInput, strict=False))
                break
            except msgspec.ValidationError as error:
                # The decoder stops at the first fault; people want to see all.
                detail = detail_of(error, NotificationRuleInput)
            details.append(Detail(f"rules[{number}].{detail.field}", detail.message))
            name = head(detail.field)
            rest = {one: value for one, value in rest.items() if one != name}
            if name in _SAMPLES:
                rest[name] = _SAMPLES[name]
    return inputs, details + problems(inputs)


def head(field: str) -> str:
    """The name with which the path of a field begins: `quiet` of `quiet.start`, `to` of `to[0]`."""
    return field.partition(".")[0].partition("[")[0]
