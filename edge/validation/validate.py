"""Validation of bodies: the bytes of a client in, the events to forward or every violation out.

Pure but for its time slices.

An event takes one of two paths. The fast path is one typed decode, which says that the event is good as it
is. The full path takes all others: it makes the allowed repairs, lists all violations, and its verdict is
final. So the fast path may be narrower but never wider. Any bytes end in an event or in InvalidEvents.

Long work leaves the event loop to other requests: between events when a time slice is over, and in a thread
for large events.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edge.validation import depth, fast_path, full_check, outline, repair
from edge.validation.fast_path import MALFORMED, FastPath, ValidEvent, in_lower_case, slice_events
from schemas.errors import Detail, RejectedEvent, WireError
from schemas.event import Event, LenientEvent
from schemas.limits import Limit
from schemas.nesting import is_deep

if TYPE_CHECKING:
    from edge.limits.scheduler import TimeSlice

ValidatedBody = tuple[list[ValidEvent], list[RejectedEvent]]
"""The valid events of a body in their order, and the rejected ones."""

_LARGE_BYTES: Final = 65_536
"""From this size on, the full path takes too long for the event loop; smaller events take a few milliseconds
at most."""
_EVENTS_PER_CHECK: Final = 20
"""Events of the fast path between two checks of the clock."""
_TOO_DEEP: Final = "JSON is nested too deeply"


class InvalidEvents(Exception):
    """The body breaks the schema or a limit; `details` is for the client."""

    def __init__(self, details: list[Detail]) -> None:
        super().__init__(details)
        self.details = details


class ValidationRules(Struct, frozen=True):
    """How strictly a project validates an SDK's events: both paths agree."""

    fast: FastPath
    violations: Callable[[Any], list[Detail]]
    decode: Callable[[bytes | Raw], Event]
    """Proves that an event without violations is one that everything behind the edge can decode."""


STRICT: Final = ValidationRules(fast_path.STRICT, full_check.strict, msgspec.json.Decoder(Event).decode)
LENIENT: Final = ValidationRules(
    fast_path.LENIENT, full_check.lenient, msgspec.json.Decoder(LenientEvent).decode
)

_encode: Final = msgspec.json.Encoder().encode
_MAX_EVENTS: Final = Limit.EVENTS_PER_BATCH.maximum
_Items: Final = outline.items_struct(_MAX_EVENTS)


class _Wrapper(Struct):
    events: Raw | UnsetType = UNSET


class _Batch(Struct):
    events: _Items  # type: ignore[valid-type]


_decode_wrapper: Final = msgspec.json.Decoder(_Wrapper).decode
_decode_batch: Final = msgspec.json.Decoder(_Batch).decode
_decode_list: Final = outline.first_items(_MAX_EVENTS)


async def validate_single(body: bytes, rules: ValidationRules, time_slice: "TimeSlice") -> ValidatedBody:
    """The one event of a body. Raises InvalidEvents."""
    return [await _validate_in_time(checked_text(body), rules, time_slice)], []


async def validate_batch(body: bytes, rules: ValidationRules, time_slice: "TimeSlice") -> ValidatedBody:
    """The events of a batch. Raises InvalidEvents if the wrapper is invalid."""
    valid = await _validate_together(body, rules.fast, time_slice)
    return await validate_each(body, rules, time_slice) if valid is None else (valid, [])


async def _validate_together(body: bytes, path: FastPath, time_slice: "TimeSlice") -> list[ValidEvent] | None:
    """The events of a batch, if all take the fast path."""
    events = slice_events(body)
    if events is None or max(map(len, events)) >= _LARGE_BYTES:
        return None
    valid: list[ValidEvent] = []
    for first in range(0, len(events), _EVENTS_PER_CHECK):
        part = path.valid_events(events[first : first + _EVENTS_PER_CHECK])
        if part is None:
            return None
        valid += part
        if time_slice.over:
            await time_slice.pause()
    return valid


async def validate_each(body: bytes, rules: ValidationRules, time_slice: "TimeSlice") -> ValidatedBody:
    """The events of a batch, validated one by one. Raises InvalidEvents if the wrapper is invalid."""
    checked_text(body)
    events = open_batch(body) if len(body) < _LARGE_BYTES else _split(body)
    if events is None:
        events = await time_slice.run_in_thread(_split_slowly, body)
    valid: list[ValidEvent] = []
    rejected: list[RejectedEvent] = []
    for index, event in enumerate(events):
        try:
            valid.append(await _validate_in_time(event, rules, time_slice))
        except InvalidEvents as error:
            rejected.append(RejectedEvent(index, WireError.VALIDATION_FAILED.code, error.details))
        if time_slice.over:
            await time_slice.pause()
    return valid, rejected


async def _validate_in_time(
    event: bytes | Raw, rules: ValidationRules, time_slice: "TimeSlice"
) -> ValidEvent:
    if len(event) < _LARGE_BYTES:
        return validate(event, rules)
    return await time_slice.run_in_thread(validate, event, rules)


def validate(event: bytes | Raw, rules: ValidationRules) -> ValidEvent:
    """The id in lower case and the bytes to forward: the original ones unless a repair is needed.

    The whole body must already be UTF-8 (`checked_text`). Raises InvalidEvents.
    """
    # Decoding many values would block every other thread.
    is_crowded = len(event) >= _LARGE_BYTES and outline.has_many_values(bytes(event))
    valid = None if is_crowded else rules.fast.valid_events([event])
    return valid[0] if valid else _validate_fully(bytes(event), rules)


def checked_text(body: bytes) -> bytes:
    """The body if it is UTF-8: decoders don't check the fields that they skip. Raises InvalidEvents."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise InvalidEvents([Detail("body", f"not UTF-8 at byte {error.start}")]) from None
    return body


def open_batch(body: bytes) -> list[Raw]:
    """The raw events of a batch. Raises InvalidEvents if the wrapper is invalid (contract, section 2, point 2)."""
    events = _split(body)
    return _split_slowly(body) if events is None else events


def event_at(body: bytes, index: int) -> Raw | None:
    """An event of a batch that was validated; None if the wrapper would have to be repaired to find it."""
    events = _split(body)
    return events[index] if events else None


def _split(body: bytes) -> list[Raw] | None:
    """The raw events of a batch; None if the wrapper needs `_split_slowly`."""
    try:
        events = outline.present_items(_decode_batch(body).events)
    except (*MALFORMED, RecursionError):
        return None
    return events if len(events) <= _MAX_EVENTS else None


def _split_slowly(body: bytes) -> list[Raw]:
    """The raw events of a wrapper that is repaired first. Raises InvalidEvents."""
    repaired = repair.replace_lone_surrogates(body) if repair.has_surrogates(body) else body
    events_text, too_deep_events = _open_wrapper(repaired)
    if events_text is UNSET or bytes(events_text) == b"null":
        raise InvalidEvents([Detail("events", "required")])
    try:
        events = _decode_list(events_text)
    except msgspec.ValidationError:
        raise InvalidEvents([Detail("events", "expected an array")]) from None
    if len(events) > _MAX_EVENTS:
        raise InvalidEvents([Detail("events", Limit.EVENTS_PER_BATCH.sentence)])
    return [Raw(too_deep_events.get(bytes(event), event)) for event in events] if too_deep_events else events


def _open_wrapper(body: bytes) -> tuple[Raw | UnsetType, dict[bytes, bytes]]:
    """The events of a wrapper, and those replaced in it because they are too deep to be decoded with the others."""
    too_deep_events: dict[bytes, bytes] = {}
    try:
        try:
            return _decode_wrapper(body).events, too_deep_events
        except RecursionError:
            body, too_deep_events = depth.replace_deep_events(body)
            return _decode_wrapper(body).events, too_deep_events
    except RecursionError:
        raise InvalidEvents([Detail("body", _TOO_DEEP)]) from None
    except MALFORMED as error:
        _refuse_json(body, error)


def _validate_fully(event: bytes, rules: ValidationRules) -> ValidEvent:
    """Make the allowed repairs, and refuse an event with all of its violations."""
    if is_deep(event):
        raise InvalidEvents([Detail("body", _TOO_DEEP)])
    if repair.has_surrogates(event):
        event = repair.replace_lone_surrogates(event)
    if violations := rules.violations(_read(event)):
        raise InvalidEvents(violations)
    try:
        decoded = _decode(event, rules)
    except MALFORMED:
        event = repair.with_whole_numbers(event)
        try:
            decoded = _decode(event, rules)
        except MALFORMED as error:
            raise InvalidEvents([Detail("event", str(error))]) from None
    return in_lower_case(decoded.id, event)


def _read(event: bytes) -> Any:
    """The value of an event for its full check; of a large event only the checked parts.

    Raises InvalidEvents if the event isn't JSON.
    """
    if len(event) < _LARGE_BYTES:
        return _parse(event)
    try:
        return outline.outline(event)
    except MALFORMED as error:
        _refuse_json(event, error)


def _decode(event: bytes, rules: ValidationRules) -> Event:
    return rules.decode(event if len(event) < _LARGE_BYTES else _encode(outline.outline(event)))


def _parse(event: bytes) -> Any:
    """Any JSON value. A number that is out of range is no error in a field that isn't checked."""
    text = event.decode()
    # Python refuses integers of thousands of digits; as floats they are still out of every range. A callback
    # for each number is ten times slower if there are many, so it is only the second attempt.
    for read_integer in (None, _integer):
        try:
            return json.loads(text, parse_constant=_refuse_constant, parse_int=read_integer)
        except json.JSONDecodeError as error:
            _refuse_json(event, error)
        except ValueError:
            continue
    raise AssertionError("the second attempt reads every integer")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _refuse_json(text: bytes, error: Exception) -> NoReturn:
    if isinstance(error, msgspec.ValidationError) and not text.lstrip().startswith(b"{"):
        raise InvalidEvents([Detail("body", 'expected an object: {"events": [...]}')]) from None
    raise InvalidEvents([Detail("body", f"malformed JSON: {error}")]) from None
