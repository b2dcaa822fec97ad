"""Every violation of the event's schema and limits, for the answer to a bad event (protocol, section 2; contract, 2.3).

A decoder stops at its first error, so the value is walked here, by checks that are made from the structs of `schemas.event`. A check
gets a decoded JSON value and the dotted path at which it stands. It stops walking into a list or map at its limit, so that the work for one
event is bounded whatever was sent.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import Meta, Raw, Struct, structs

from edge.validation.timestamps import is_utc
from schemas.errors import Detail
from schemas.event import RELEASE_PATTERN, TIME_PATTERN, UUID7_PATTERN, UUID_PATTERN, Event, LenientEvent
from schemas.limits import MAX_DETAILS, Limit
from schemas.releases import is_release

REQUIRED: Final = "required"
_LONGEST_KEY: Final = 64
"""How much of a sender's own key is said back."""
_FORMS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    UUID7_PATTERN: (re.compile(UUID7_PATTERN).search, "expected a uuid of version 7"),
    UUID_PATTERN: (re.compile(UUID_PATTERN).search, "expected a uuid"),
    RELEASE_PATTERN: (is_release, "expected <app-name>@<version>+<build>"),
    TIME_PATTERN: (is_utc, "expected an ISO 8601 time in UTC, such as 2026-01-31T12:00:00.000Z"),
}
"""By the pattern that the schema declares: what holds for a text of this form, and the sentence for any other."""


class Violations(list[Detail]):
    """Violations in the order of the schema, up to the most that one event's `details` lists."""

    def note(self, field: str, message: str) -> None:
        """Add a violation; past the limit it is dropped."""
        if len(self) < MAX_DETAILS:
            self.append(Detail(field, message))


Check = Callable[[Any, str, Violations], None]


def _text(bounds: Meta) -> Check:
    pattern = bounds.pattern or (bounds.extra_json_schema or {}).get("pattern")
    holds, expected = _FORMS[pattern] if pattern else (None, "expected a string")
    least, most = bounds.min_length or 0, bounds.max_length
    limit = _limit(bounds)
    if most and not pattern and not limit:
        expected = f"expected a string of {least} to {most} characters"

    def check(value: Any, path: str, found: Violations) -> None:
        if not isinstance(value, str) or (holds and not holds(value)):
            found.note(path, expected)
        elif len(value) < least or (most and len(value) > most):
            found.note(path, limit.sentence if limit else expected)

    return check


def _boolean(value: Any, path: str, found: Violations) -> None:
    if not isinstance(value, bool):
        found.note(path, "expected a boolean")


def _integer(bounds: Meta) -> Check:
    least, most = bounds.ge, bounds.le
    assert least is not None
    assert most is not None

    def check(value: Any, path: str, found: Violations) -> None:
        # `1.0` is an integer by JSON's own account of numbers.
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or (isinstance(value, float) and not value.is_integer()):
            found.note(path, "expected an integer")
        elif not least <= value <= most:
            found.note(path, f"expected an integer from {least} to {most}")

    return check


def _choice(allowed: Iterable[str]) -> Check:
    known = tuple(allowed)
    expected = "expected one of: " + ", ".join(known)

    def check(value: Any, path: str, found: Violations) -> None:
        if not isinstance(value, str) or value not in known:
            found.note(path, expected)

    return check


def _anything(value: Any, path: str, found: Violations) -> None:
    """Free-form."""


def _list(item: Check, limit: Limit | None) -> Check:
    def check(value: Any, path: str, found: Violations) -> None:
        if not isinstance(value, list):
            found.note(path, "expected an array")
            return
        if limit and len(value) > limit.maximum:
            found.note(path, limit.sentence)
        for index, each in enumerate(value[: limit.maximum] if limit else value):
            item(each, f"{path}[{index}]", found)

    return check


def _map(key_limit: Limit | None, item: Check, limit: Limit | None) -> Check:
    def check(value: Any, path: str, found: Violations) -> None:
        if not isinstance(value, dict):
            found.note(path, "expected an object")
            return
        if limit and len(value) > limit.maximum:
            found.note(path, limit.sentence)
        for key, each in list(value.items())[: limit.maximum if limit else None]:
            if len(found) == MAX_DETAILS:
                return
            if key_limit and len(key) > key_limit.maximum:
                found.note(path, key_limit.sentence)
            else:
                item(each, f"{path}.{key[:_LONGEST_KEY]}", found)

    return check


def _object(required: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    """Null for an optional field is as if it were left out, unknown fields are passed over."""

    def check(value: Any, path: str, found: Violations) -> None:
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


def _struct(kind: type[Struct]) -> Check:
    required, optional = dict[str, Check](), dict[str, Check]()
    chain = ""
    for field in structs.fields(kind):
        if kind in get_args(field.type):
            chain = field.encode_name
        else:
            (required if field.required else optional)[field.encode_name] = _check_of(field.type)
    fields = _object(required, optional)
    return _chain(fields, chain, Limit.CAUSE_DEPTH) if chain else fields


def _chain(fields: Check, name: str, limit: Limit) -> Check:
    """An object that holds another of its kind as `name`, each looked at in turn: a chain has no depth of its own here."""

    def check(value: Any, path: str, found: Violations) -> None:
        top = path
        for depth in range(limit.maximum + 2):
            if depth > limit.maximum:
                found.note(f"{top}.{name}", limit.sentence)
                return
            fields(value, path, found)
            value, path = (value.get(name) if isinstance(value, dict) else None), f"{path}.{name}"
            if value is None:
                return

    return check


def _tagged(kinds: Iterable[type[Struct]]) -> Check:
    """One of several structs, told apart by a tag: what is the same in all is looked at whatever the tag says."""
    members: dict[str, Check] = {}
    common: dict[str, Check] = {}
    for kind in kinds:
        config = kind.__struct_config__
        assert isinstance(config.tag, str)
        assert config.tag_field is not None
        tag_field = config.tag_field
        fields = {field.encode_name: _check_of(field.type) for field in structs.fields(kind)}
        members[config.tag] = fields.pop("data")
        common = fields
    common |= {tag_field: _choice(members), "data": _object({}, {})}
    look = _object(common, {})

    def check(value: Any, path: str, found: Violations) -> None:
        look(value, path, found)
        tag = value.get(tag_field) if isinstance(value, dict) else None
        if isinstance(tag, str) and tag in members and isinstance(value.get("data"), dict):
            members[tag](value["data"], f"{path}.data", found)

    return check


def _limit(bounds: Meta) -> Limit | None:
    limit = (bounds.extra or {}).get("limit")
    assert limit is None or isinstance(limit, Limit)
    return limit


def _check_of(kind: Any, bounds: Meta = Meta()) -> Check:  # noqa: B008 - it never changes
    """What holds for a value of a type, as the type and what it is annotated with say."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        check = _check_of(arguments[0], arguments[1])
    elif origin in {Union, UnionType}:
        kinds = [each for each in arguments if each is not NoneType]
        check = _check_of(kinds[0], bounds) if len(kinds) == 1 else _tagged(kinds)
    elif origin is Literal:
        check = _choice(arguments)
    elif origin is list:
        check = _list(_check_of(arguments[0]), _limit(bounds))
    elif origin is dict:
        check = _dict(arguments, bounds)
    elif kind in _PLAIN:
        check = _PLAIN[kind](bounds)
    else:
        check = _struct(kind)
    return check


def _dict(arguments: tuple[Any, ...], bounds: Meta) -> Check:
    key, value = arguments
    if value is Raw:
        return _object({}, {})
    annotated = get_args(key)
    return _map(_limit(annotated[1]) if annotated else None, _check_of(value), _limit(bounds))


_PLAIN: Final[dict[Any, Callable[[Meta], Check]]] = {
    str: _text,
    int: _integer,
    bool: lambda _: _boolean,
    Raw: lambda _: _anything,
}
_STRICT: Final = _check_of(Event)
_LENIENT: Final = _check_of(LenientEvent)


def strict(event: Any) -> list[Detail]:
    """Violations of the letter of the protocol, in the order of its tables; none for a good event."""
    found = Violations()
    _STRICT(event, "", found)
    return found


def lenient(event: Any) -> list[Detail]:
    """Violations of what a lenient project takes (contract, section 2, point 7)."""
    found = Violations()
    _LENIENT(event, "", found)
    return found
