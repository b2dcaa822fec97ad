"""Admission in turns: what a body needs of `edge.validation.validate` and `edge.validation.fast_path`, without keeping other requests waiting."""

from typing import Final

from msgspec import Raw

from edge.limits.scheduler import TimeSlice
from edge.validation.fast_path import cut, valid_ids
from edge.validation.validate import (
    STRICT,
    InvalidEvents,
    ValidationRules,
    checked_text,
    open_batch_slowly,
    split_batch,
    validate,
)
from schemas.errors import RejectedEvent, WireError

ValidEvent = tuple[str, bytes | Raw]
"""An event's id in lower case and the bytes to forward."""

_LARGE_BYTES: Final = 65_536
"""From here on a body's slow path leaves the loop to others, in a thread."""
_AT_ONCE: Final = 20
"""Events between two looks at the clock, where all are sound."""


async def validate_single(body: bytes, rules: ValidationRules, time_slice: TimeSlice) -> ValidEvent:
    """The event that a body is. Raises InvalidEvents."""
    return await _validate(checked_text(body), rules, time_slice)


async def validate_batch(
    body: bytes, rules: ValidationRules, time_slice: TimeSlice
) -> tuple[list[ValidEvent], list[RejectedEvent]]:
    """The events of a batch that are admitted, in their order, and the others. Raises InvalidEvents for a bad wrapper."""
    if rules is STRICT:
        sound = await _validate_fast(body, time_slice)
        if sound is not None:
            return sound, []
    return await validate_each(body, rules, time_slice)


async def validate_each(
    body: bytes, rules: ValidationRules, time_slice: TimeSlice
) -> tuple[list[ValidEvent], list[RejectedEvent]]:
    """The same by the way that any batch can take."""
    return await _validate_all(await _open_batch(checked_text(body), time_slice), rules, time_slice)


async def _validate_fast(body: bytes, time_slice: TimeSlice) -> list[ValidEvent] | None:
    events = cut(body)
    if events is None or max(map(len, events)) >= _LARGE_BYTES:
        return None
    ids: list[str] = []
    for first in range(0, len(events), _AT_ONCE):
        found = valid_ids(events[first : first + _AT_ONCE])
        if found is None:
            return None
        ids += found
        if time_slice.over:
            await time_slice.pause()
    return list(zip(ids, events, strict=True))


async def _validate_all(
    events: list[Raw], rules: ValidationRules, time_slice: TimeSlice
) -> tuple[list[ValidEvent], list[RejectedEvent]]:
    valid: list[ValidEvent] = []
    rejected: list[RejectedEvent] = []
    for index, raw in enumerate(events):
        try:
            valid.append(
                validate(raw, rules) if len(raw) < _LARGE_BYTES else await _validate(raw, rules, time_slice)
            )
        except InvalidEvents as refused:
            rejected.append(RejectedEvent(index, WireError.VALIDATION_FAILED.code, refused.details))
        if time_slice.over:
            await time_slice.pause()
    return valid, rejected


async def _validate(event: bytes | Raw, rules: ValidationRules, time_slice: TimeSlice) -> ValidEvent:
    if len(event) < _LARGE_BYTES:
        return validate(event, rules)
    return await time_slice.elsewhere(validate, event, rules)


async def _open_batch(body: bytes, time_slice: TimeSlice) -> list[Raw]:
    events = split_batch(body)
    if events is not None:
        return events
    if len(body) < _LARGE_BYTES:
        return open_batch_slowly(body)
    return await time_slice.elsewhere(open_batch_slowly, body)
