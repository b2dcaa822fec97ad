"""Admission in turns: what a body needs of `edge.validation.validate` and `edge.validation.fast_path`, without keeping other requests waiting."""

from typing import Final

from msgspec import Raw

from edge.limits.scheduler import Turn
from edge.validation.fast_path import cut, sound_ids
from edge.validation.validate import (
    STRICT,
    InvalidEvents,
    ValidationRules,
    admit,
    checked_text,
    open_batch_slowly,
    split_batch,
)
from schemas.errors import RejectedEvent, WireError

Admitted = tuple[str, bytes | Raw]
"""An event's id in lower case and the bytes to forward."""

_LARGE_BYTES: Final = 65_536
"""From here on a body's slow path leaves the loop to others, in a thread."""
_AT_ONCE: Final = 20
"""Events between two looks at the clock, where all are sound."""


async def admit_single(body: bytes, rules: ValidationRules, turn: Turn) -> Admitted:
    """The event that a body is. Raises InvalidEvents."""
    return await _admit(checked_text(body), rules, turn)


async def admit_batch(
    body: bytes, rules: ValidationRules, turn: Turn
) -> tuple[list[Admitted], list[RejectedEvent]]:
    """The events of a batch that are admitted, in their order, and the others. Raises InvalidEvents for a bad wrapper."""
    if rules is STRICT:
        sound = await _admit_sound(body, turn)
        if sound is not None:
            return sound, []
    return await admit_each(body, rules, turn)


async def admit_each(
    body: bytes, rules: ValidationRules, turn: Turn
) -> tuple[list[Admitted], list[RejectedEvent]]:
    """The same by the way that any batch can take."""
    return await _admit_all(await _open_batch(checked_text(body), turn), rules, turn)


async def _admit_sound(body: bytes, turn: Turn) -> list[Admitted] | None:
    events = cut(body)
    if events is None or max(map(len, events)) >= _LARGE_BYTES:
        return None
    ids: list[str] = []
    for first in range(0, len(events), _AT_ONCE):
        found = sound_ids(events[first : first + _AT_ONCE])
        if found is None:
            return None
        ids += found
        if turn.over:
            await turn.pause()
    return list(zip(ids, events, strict=True))


async def _admit_all(
    events: list[Raw], rules: ValidationRules, turn: Turn
) -> tuple[list[Admitted], list[RejectedEvent]]:
    admitted: list[Admitted] = []
    rejected: list[RejectedEvent] = []
    for index, raw in enumerate(events):
        try:
            admitted.append(admit(raw, rules) if len(raw) < _LARGE_BYTES else await _admit(raw, rules, turn))
        except InvalidEvents as refused:
            rejected.append(RejectedEvent(index, WireError.VALIDATION_FAILED.code, refused.details))
        if turn.over:
            await turn.pause()
    return admitted, rejected


async def _admit(event: bytes | Raw, rules: ValidationRules, turn: Turn) -> Admitted:
    if len(event) < _LARGE_BYTES:
        return admit(event, rules)
    return await turn.elsewhere(admit, event, rules)


async def _open_batch(body: bytes, turn: Turn) -> list[Raw]:
    events = split_batch(body)
    if events is not None:
        return events
    if len(body) < _LARGE_BYTES:
        return open_batch_slowly(body)
    return await turn.elsewhere(open_batch_slowly, body)
