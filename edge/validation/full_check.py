"""Lists every violation of the event's schema and limits, for the response to an invalid event.

See the protocol, section 2, and the contract, 2.3. A decoder stops at its first error, so checks that are
built from the structs of `schemas.event` walk the decoded value. A check gets a JSON value and its dotted
path. It visits no more items of a list or map than its limit, so the work for one event is bounded.
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
_MAX_KEY_LENGTH: Final = 64
"""Characters of a client's own key that are repeated in a violation."""
_FORMATS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    UUID7_PATTERN: (
        re.compile(UUID7_PATTERN).search,
        "expected a uuid of version 7, from the v7 function of a uuid library; a random uuid (version 4) is refused",
    ),
    UUID_PATTERN: (re.compile(UUID_PATTERN).search, "expected a uuid"),
    RELEASE_PATTERN: (is_release, "expected <app-name>@<version>+<build>"),
    TIME_PATTERN: (is_utc, "expected an ISO 8601 time in UTC, such as 2026-01-31T12:00:00.000Z"),
}
"""By the pattern in the schema: the check of a string, and the message of a violation."""


class Violations(list[Detail]):
    """Violations in the order of the schema, up to the limit of one event's `details`."""

    def add(self, field: str, message: str) -> None:
        """Add a violation; it is dropped when the limit is reached."""
        if len(self) < MAX_DETAILS:
            self.append(Detail(field, message))


Check = Callable[[Any, str, Violations], None]


def _text(bounds: Meta) -> Check:
    pattern = bounds.pattern or (bounds.extra_json_schema or {}).get("pattern")
    is_valid, expected = _FORMATS[pattern] if pattern else (None, "expected a string")
    minimum, maximum = bounds.min_length or 0, bounds.max_length
    limit = _limit(bounds)
    if maximum and not pattern and not limit:
        expected = f"expected a string of {minimum} to {maximum} characters"

    def check(value: Any, path: str, violations: Violations) -> None:
        if not isinstance(value, str) or (is_valid and not is_valid(value)):
            violations.add(path, expected)
        elif len(value) < minimum or (maximum and len(value) > maximum):
            violations.add(path, limit.sentence if limit else expected)

    return check


def _boolean(value: Any, path: str, violations: Violations) -> None:
    if not isinstance(value, bool):
        violations.add(path, "expected a boolean")


def _integer(bounds: Meta) -> Check:
    minimum, maximum = bounds.ge, bounds.le
    assert minimum is not None
    assert maximum is not None

    def check(value: Any, path: str, violations: Violations) -> None:
        # In JSON `1.0` is an integer too.
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or (isinstance(value, float) and not value.is_integer()):
            violations.add(path, "expected an integer")
        elif not minimum <= value <= maximum:
            violations.add(path, f"expected an integer from {minimum} to {maximum}")

    return check


def _choice(allowed: Iterable[str]) -> Check:
    known = tuple(allowed)
    expected = "expected one of: " + ", ".join(known)

    def check(value: Any, path: str, violations: Violations) -> None:
        if not isinstance(value, str) or value not in known:
            violations.add(path, expected)

    return check


def _anything(value: Any, path: str, violations: Violations) -> None:
    """Free-form."""


def _list(item: Check, limit: Limit | None) -> Check:
    def check(value: Any, path: str, violations: Violations) -> None:
        if not isinstance(value, list):
            violations.add(path, "expected an array")
            return
        if limit and len(value) > limit.maximum:
            violations.add(path, limit.sentence)
        for index, element in enumerate(value[: limit.maximum] if limit else value):
            item(element, f"{path}[{index}]", violations)

    return check


def _map(key_limit: Limit | None, item: Check, limit: Limit | None) -> Check:
    def check(value: Any, path: str, violations: Violations) -> None:
        if not isinstance(value, dict):
            violations.add(path, "expected an object")
            return
        if limit and len(value) > limit.maximum:
            violations.add(path, limit.sentence)
        for key, element in list(value.items())[: limit.maximum if limit else None]:
            if len(violations) == MAX_DETAILS:
                return
            if key_limit and len(key) > key_limit.maximum:
                violations.add(path, key_limit.sentence)
            else:
                item(element, f"{path}.{key[:_MAX_KEY_LENGTH]}", violations)

    return check


def _object(required: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    """An optional field that is null counts as absent; unknown fields are ignored."""

    def check(value: Any, path: str, violations: Violations) -> None:
        if not isinstance(value, dict):
            violations.add(path or "event", "expected an object")
            return
        prefix = f"{path}." if path else ""
        for name, check_field in required.items():
            if value.get(name) is None:
                violations.add(prefix + name, REQUIRED)
            else:
                check_field(value[name], prefix + name, violations)
        for name, check_field in optional.items():
            if value.get(name) is not None:
                check_field(value[name], prefix + name, violations)

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
    """An object that contains another of its kind as `name`, checked iteratively to allow any depth."""

    def check(value: Any, path: str, violations: Violations) -> None:
        root = path
        for depth in range(limit.maximum + 2):
            if depth > limit.maximum:
                violations.add(f"{root}.{name}", limit.sentence)
                return
            fields(value, path, violations)
            value, path = (value.get(name) if isinstance(value, dict) else None), f"{path}.{name}"
            if value is None:
                return

    return check


def _tagged(kinds: Iterable[type[Struct]]) -> Check:
    """One of several structs, distinguished by a tag: their common fields are checked whatever the tag is."""
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
    check_common = _object(common, {})

    def check(value: Any, path: str, violations: Violations) -> None:
        check_common(value, path, violations)
        tag = value.get(tag_field) if isinstance(value, dict) else None
        if isinstance(tag, str) and tag in members and isinstance(value.get("data"), dict):
            members[tag](value["data"], f"{path}.data", violations)

    return check


def _limit(bounds: Meta) -> Limit | None:
    limit = (bounds.extra or {}).get("limit")
    assert limit is None or isinstance(limit, Limit)
    return limit


def _check_of(kind: Any, bounds: Meta = Meta()) -> Check:  # noqa: B008 - it never changes
    """The check of a type with its annotations."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        check = _check_of(arguments[0], arguments[1])
    elif origin in {Union, UnionType}:
        kinds = [argument for argument in arguments if argument is not NoneType]
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
    """Violations of the protocol, in the order of its tables; empty for a valid event."""
    violations = Violations()
    _STRICT(event, "", violations)
    return violations


def lenient(event: Any) -> list[Detail]:
    """Violations of the rules of a lenient project (contract, section 2, point 7)."""
    violations = Violations()
    _LENIENT(event, "", violations)
    return violations
