"""Bytes of a client in, admitted events or every reason against them out. Pure: no clock, no I/O, no framework.

The fast path is one decode into the structs of `schemas.event`. Only what it refuses takes the slow way, which mends what
may be mended, lists all violations, and has the last word. Any bytes end in an admitted event or in Refused.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edge.validation import depth, full_check, outline, repair, timestamps
from schemas.errors import Detail
from schemas.event import Error as StrictError
from schemas.event import Event, LenientError, LenientEvent
from schemas.limits import MAX_DEPTH, Limit
from schemas.nesting import is_deep
from schemas.releases import is_release

MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError)
"""What msgspec raises at bytes that aren't what they should be; a RecursionError too where nothing was said about their depth."""
_LARGE_BYTES: Final = 65_536
"""A shorter event is read in a few milliseconds whatever stands in it."""
_TOO_DEEP: Final = "JSON is nested too deeply"


class InvalidEvents(Exception):
    """What was sent breaks the schema or a limit; `details` is for the sender."""

    def __init__(self, details: list[Detail]) -> None:
        super().__init__(details)
        self.details = details


class ValidationRules(Struct, frozen=True):
    """How strictly a project takes an SDK's events: the fast decoder and the full check, which agree."""

    decode: Callable[[bytes | Raw], Event]
    violations: Callable[[Any], list[Detail]]
    is_release: Callable[[str], bool]


STRICT: Final = ValidationRules(msgspec.json.Decoder(Event).decode, full_check.strict, is_release)
LENIENT: Final = ValidationRules(msgspec.json.Decoder(LenientEvent).decode, full_check.lenient, bool)

_encode: Final = msgspec.json.Encoder().encode
_MOST: Final = Limit.EVENTS_PER_BATCH.maximum
_Items: Final = outline.items_struct(_MOST)


class _Wrapper(Struct):
    events: Raw | UnsetType = UNSET


class _Batch(Struct):
    events: _Items  # type: ignore[valid-type]


_decode_wrapper: Final = msgspec.json.Decoder(_Wrapper).decode
_decode_batch: Final = msgspec.json.Decoder(_Batch).decode
_decode_list: Final = outline.first_items(_MOST)


def validate(event: bytes | Raw, rules: ValidationRules) -> tuple[str, bytes | Raw]:
    """The id in lower case and the bytes to forward: those that came, unless something in them is to be mended.

    The whole body must be UTF-8 already (`checked_text`). Raises InvalidEvents.
    """
    if len(event) > MAX_DEPTH and is_deep(bytes(event)):
        raise InvalidEvents([Detail("body", _TOO_DEEP)])
    if len(event) >= _LARGE_BYTES and outline.is_crowded(text := bytes(event)):
        return _validate_outlined(text, rules)
    try:
        decoded = rules.decode(event)
    except MALFORMED:
        return _validate_slowly(bytes(event), rules)
    if not _is_well_formed(decoded, rules) or too_deep(decoded.error.cause):
        return _validate_slowly(bytes(event), rules)
    event_id = decoded.id
    if event_id.islower():
        return event_id, event
    return _in_lower_case(event_id, event)


def checked_text(body: bytes) -> bytes:
    """The body, if it is UTF-8: a decoder that passes over unknown fields doesn't look. Raises InvalidEvents."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise InvalidEvents([Detail("body", f"not UTF-8 at byte {error.start}")]) from None
    return body


def open_batch(body: bytes) -> list[Raw]:
    """The events of a batch, each still raw. Raises InvalidEvents for a bad wrapper (contract, section 2, point 2)."""
    events = split_batch(body)
    return open_batch_slowly(body) if events is None else events


def split_batch(body: bytes) -> list[Raw] | None:
    """The same, or None where the wrapper has to be looked at more closely."""
    try:
        events = outline.set_items(_decode_batch(body).events)
    except (*MALFORMED, RecursionError):
        return None
    return events if len(events) <= _MOST else None


def open_batch_slowly(body: bytes) -> list[Raw]:
    """The second half of `open_batch`: mends what may be mended, and says what is wrong. Raises InvalidEvents."""
    repaired = repair.replace_lone_surrogates(body) if repair.has_surrogates(body) else body
    events_text, too_deep_events = _open_wrapper(repaired)
    if events_text is UNSET or bytes(events_text) == b"null":
        raise InvalidEvents([Detail("events", "required")])
    try:
        events = _decode_list(events_text)
    except msgspec.ValidationError:
        raise InvalidEvents([Detail("events", "expected an array")]) from None
    if len(events) > _MOST:
        raise InvalidEvents([Detail("events", Limit.EVENTS_PER_BATCH.sentence)])
    return [Raw(too_deep_events.get(bytes(event), event)) for event in events] if too_deep_events else events


def _open_wrapper(body: bytes) -> tuple[Raw | UnsetType, dict[bytes, bytes]]:
    """The events of a wrapper, and what was set aside in them because it is too deep to be read with the others."""
    too_deep_events: dict[bytes, bytes] = {}
    try:
        try:
            return _decode_wrapper(body).events, too_deep_events
        except RecursionError:
            body, too_deep_events = depth.cut_deep(body)
            return _decode_wrapper(body).events, too_deep_events
    except RecursionError:
        raise InvalidEvents([Detail("body", _TOO_DEEP)]) from None
    except MALFORMED as error:
        _refuse_json(body, error)


def _validate_slowly(event: bytes, rules: ValidationRules) -> tuple[str, bytes]:
    if len(event) >= _LARGE_BYTES:
        return _validate_outlined(event, rules)
    if repair.has_surrogates(event):
        event = repair.replace_lone_surrogates(event)
    found = rules.violations(_parse(event))
    if found:
        raise InvalidEvents(found)
    try:
        decoded = rules.decode(event)
    except MALFORMED:
        event = repair.with_whole_numbers(event)
        decoded = _decode_repaired(event, rules)
    if decoded.id.islower():
        return decoded.id, event
    return _in_lower_case(decoded.id, event)


def _validate_outlined(event: bytes, rules: ValidationRules) -> tuple[str, bytes]:
    """The slow way where reading the whole would keep every other thread waiting: what isn't looked at is not read."""
    if repair.has_surrogates(event):
        event = repair.replace_lone_surrogates(event)
    try:
        seen = outline.outline(event)
    except MALFORMED as error:
        _refuse_json(event, error)
    found = rules.violations(seen)
    if found:
        raise InvalidEvents(found)
    try:
        decoded = rules.decode(_encode(seen))
    except MALFORMED:
        event = repair.with_whole_numbers(event)
        decoded = _decode_repaired(_encode(outline.outline(event)), rules)
    if decoded.id.islower():
        return decoded.id, event
    return _in_lower_case(decoded.id, event)


def _decode_repaired(event: bytes, rules: ValidationRules) -> Event:
    try:
        return rules.decode(event)
    except MALFORMED as error:
        raise InvalidEvents([Detail("event", str(error))]) from None


def _in_lower_case(event_id: str, event: bytes | Raw) -> tuple[str, bytes | Raw | Any]:
    lower = event_id.lower()
    # An id of digits alone is neither in upper nor in lower case.
    return (lower, event) if lower == event_id else (lower, repair.with_id(event, event_id))


def _is_well_formed(event: Event, rules: ValidationRules) -> bool:
    """Whether the texts that decoding takes in any form have theirs."""
    return rules.is_release(event.release) and timestamps.are_utc(
        timestamps.of_event(event.timestamp, event.breadcrumbs)
    )


def too_deep(cause: StrictError | LenientError | None) -> bool:
    """Whether the causes below an error are more than the limit."""
    depth = 0
    while cause is not None:
        depth += 1
        cause = cause.cause
    return depth > Limit.CAUSE_DEPTH.maximum


def _parse(event: bytes) -> Any:
    """Any JSON value; a number that is no number of this machine doesn't matter where nothing asks for one."""
    text = event.decode()
    # Python refuses to read thousands of digits; as a float they are still out of every range. Calling us for each number
    # is ten times slower where there are many, so it is the second way.
    for read_integer in (None, _integer):
        try:
            return json.loads(text, parse_constant=_refuse_constant, parse_int=read_integer)
        except json.JSONDecodeError as error:
            _refuse_json(event, error)
        except ValueError:
            continue
    raise AssertionError("the second way reads every integer")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _refuse_json(text: bytes, error: Exception) -> NoReturn:
    if isinstance(error, msgspec.ValidationError) and not text.lstrip().startswith(b"{"):
        raise InvalidEvents([Detail("body", "expected an object")]) from None
    raise InvalidEvents([Detail("body", f"malformed JSON: {error}")]) from None
