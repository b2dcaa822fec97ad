"""The parts from which the full check of an event is put together: each looks at one value and notes every violation.

A check gets a decoded JSON value and the dotted path at which it stands (contract, section 2, point 3). It stops walking
into a list or map at its limit, so that the work for one event is bounded whatever was sent.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from edge.validation.timestamps import is_utc
from schemas.errors import Detail
from schemas.event import MAX_INTEGER
from schemas.limits import MAX_DETAILS, Limit

REQUIRED: Final = "required"
_LONGEST_KEY: Final = 64
"""How much of a sender's own key is said back."""


class Findings(list[Detail]):
    """Violations in the order of the schema, up to the most that one event's `details` lists."""

    def note(self, field: str, message: str) -> None:
        """Add a violation; past the limit it is dropped."""
        if len(self) < MAX_DETAILS:
            self.append(Detail(field, message))


Check = Callable[[Any, str, Findings], None]


def text(value: Any, path: str, found: Findings) -> None:
    """Any string."""
    if not isinstance(value, str):
        found.note(path, "expected a string")


def boolean(value: Any, path: str, found: Findings) -> None:
    """`true` or `false`."""
    if not isinstance(value, bool):
        found.note(path, "expected a boolean")


def form(pattern: str, expected: str, longest: int | None = None) -> Check:
    """A string of a form; `expected` is the sentence for any other."""
    search = re.compile(pattern).search

    def check(value: Any, path: str, found: Findings) -> None:
        if not isinstance(value, str) or not search(value) or (longest and len(value) > longest):
            found.note(path, expected)

    return check


def sized_text(least: int, most: int) -> Check:
    """A string of a length in code points."""

    def check(value: Any, path: str, found: Findings) -> None:
        if not isinstance(value, str) or not least <= len(value) <= most:
            found.note(path, f"expected a string of {least} to {most} characters")

    return check


def whole(least: int) -> Check:
    """An integer of at least `least`; `1.0` is one by JSON's own account of numbers."""

    def check(value: Any, path: str, found: Findings) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or (isinstance(value, float) and not value.is_integer()):
            found.note(path, "expected an integer")
        elif not least <= value <= MAX_INTEGER:
            found.note(path, f"expected an integer from {least} to {MAX_INTEGER}")

    return check


def one_of(*allowed: str) -> Check:
    """One of a few strings."""
    expected = "expected one of: " + ", ".join(allowed)

    def check(value: Any, path: str, found: Findings) -> None:
        if not isinstance(value, str) or value not in allowed:
            found.note(path, expected)

    return check


def moment(value: Any, path: str, found: Findings) -> None:
    """ISO 8601 in UTC."""
    if not isinstance(value, str) or not is_utc(value):
        found.note(path, "expected an ISO 8601 time in UTC, such as 2026-01-31T12:00:00.000Z")


def anything(value: Any, path: str, found: Findings) -> None:
    """Free-form."""


def list_of(item: Check, limit: Limit | None = None) -> Check:
    """An array; only as many items as the limit allows are looked at."""

    def check(value: Any, path: str, found: Findings) -> None:
        if not isinstance(value, list):
            found.note(path, "expected an array")
            return
        if limit and len(value) > limit.maximum:
            found.note(path, limit.sentence)
        for index, each in enumerate(value[: limit.maximum] if limit else value):
            item(each, f"{path}[{index}]", found)

    return check


def map_of(item: Check) -> Check:
    """An object with keys of the sender's choice."""

    def check(value: Any, path: str, found: Findings) -> None:
        if not isinstance(value, dict):
            found.note(path, "expected an object")
            return
        for key, each in value.items():
            if len(found) == MAX_DETAILS:
                return
            item(each, f"{path}.{key[:_LONGEST_KEY]}", found)

    return check


def struct(required: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    """An object; null for an optional field is as if it were left out, unknown fields are passed over."""

    def check(value: Any, path: str, found: Findings) -> None:
        if not isinstance(value, dict):
            found.note(path or "event", "expected an object")
            return
        prefix = f"{path}." if path else ""
        for name, look in required.items():
            if value.get(name) is None:
                found.note(prefix + name, REQUIRED)
            else:
                look(value[name], prefix + name, found)
        for name, look in optional.items():
            if value.get(name) is not None:
                look(value[name], prefix + name, found)

    return check
