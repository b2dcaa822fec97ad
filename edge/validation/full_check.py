"""Every violation of the event's schema and limits, for the answer to a bad event (protocol, section 2; contract, 2.3).

The tables say again what the structs of `schemas.event` say, because a decoder stops at its first fault; a property test
holds both to the same verdict.
"""

from typing import Any, Final, get_args

from edge.validation.field_checks import (
    Check,
    Findings,
    anything,
    boolean,
    form,
    list_of,
    map_of,
    moment,
    one_of,
    sized_text,
    struct,
    text,
    whole,
)
from schemas.errors import Detail
from schemas.event import (
    MAX_INTEGER,
    UUID7_PATTERN,
    UUID_PATTERN,
    DeviceOs,
    Kind,
    LenientKind,
    Platform,
)
from schemas.limits import MAX_LENIENT_RELEASE, Limit
from schemas.releases import is_release


def strict(event: Any) -> list[Detail]:
    """Violations of the letter of the protocol, in the order of its tables; none for a good event."""
    found = Findings()
    _STRICT(event, "", found)
    return found


def lenient(event: Any) -> list[Detail]:
    """Violations of what a lenient project takes (contract, section 2, point 7)."""
    found = Findings()
    _LENIENT(event, "", found)
    return found


def _tags(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, dict):
        found.note(path, "expected an object")
        return
    if len(value) > Limit.TAG_KEYS.maximum:
        found.note(path, Limit.TAG_KEYS.sentence)
    for key, each in list(value.items())[: Limit.TAG_KEYS.maximum]:
        if len(key) > Limit.TAG_KEY_LENGTH.maximum:
            found.note(path, Limit.TAG_KEY_LENGTH.sentence)
            continue
        text(each, f"{path}.{key}", found)
        if isinstance(each, str) and len(each) > Limit.TAG_VALUE_LENGTH.maximum:
            found.note(f"{path}.{key}", Limit.TAG_VALUE_LENGTH.sentence)


def _release(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, str) or not is_release(value):
        found.note(path, "expected <app-name>@<version>+<build>")


_NUMBER: Final = whole(-MAX_INTEGER)
_DATA: Final[dict[str, Check]] = {
    "nav": struct({}, {"from": text, "to": text}),
    "net": struct({}, {"method": text, "url": text, "status": _NUMBER, "durationMs": _NUMBER}),
    "log": struct({}, {"level": text, "message": text}),
    "user": struct({}, {"action": text, "target": text}),
    "custom": struct({}, {}),
    "track": struct({}, {}),
}
_BREADCRUMB: Final = struct({"timestamp": moment, "type": one_of(*_DATA), "data": struct({}, {})}, {})


def _breadcrumb(value: Any, path: str, found: Findings) -> None:
    _BREADCRUMB(value, path, found)
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in _DATA and isinstance(value.get("data"), dict):
        _DATA[kind](value["data"], f"{path}.data", found)


def _error(least_line: int) -> Check:
    """The error and its causes, each looked at in turn: a chain has no depth of its own here."""
    lines = list_of(text, Limit.CONTEXT_LINES)
    frame = struct(
        {"file": text, "line": whole(least_line), "inApp": boolean},
        {
            "function": text,
            "column": whole(least_line),
            "absolutePath": text,
            "preContext": lines,
            "postContext": lines,
        },
    )
    fields = struct({"type": text, "message": text, "stack": list_of(frame, Limit.FRAMES)}, {})

    def check(value: Any, path: str, found: Findings) -> None:
        top = path
        for depth in range(Limit.CAUSE_DEPTH.maximum + 2):
            if depth > Limit.CAUSE_DEPTH.maximum:
                found.note(f"{top}.cause", Limit.CAUSE_DEPTH.sentence)
                return
            fields(value, path, found)
            value, path = (value.get("cause") if isinstance(value, dict) else None), f"{path}.cause"
            if value is None:
                return

    return check


def _event(uuid: Check, kinds: tuple[str, ...], release: Check, least_line: int) -> Check:
    framework = struct({"name": text, "version": text}, {})
    return struct(
        {
            "id": uuid,
            "timestamp": moment,
            "kind": one_of(*kinds),
            "platform": one_of(*get_args(Platform)),
            "release": release,
            "environment": text,
            "device": struct(
                {"os": one_of(*get_args(DeviceOs)), "osVersion": text}, {"model": text, "locale": text}
            ),
            "app": struct({"version": text}, {"build": text, "framework": framework}),
            "error": _error(least_line),
        },
        {
            "user": struct({}, {"id": text, "anonymous": boolean, "name": text, "linkHashes": map_of(text)}),
            "tags": _tags,
            "breadcrumbs": list_of(_breadcrumb, Limit.BREADCRUMBS),
            "fingerprint": list_of(anything),
            "traceId": text,
            "spanId": text,
        },
    )


_STRICT: Final = _event(
    form(UUID7_PATTERN, "expected a uuid of version 7", 36),
    get_args(Kind),
    _release,
    1,
)
_LENIENT: Final = _event(
    form(UUID_PATTERN, "expected a uuid", 36),
    get_args(LenientKind),
    sized_text(1, MAX_LENIENT_RELEASE),
    0,
)
