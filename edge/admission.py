"""Admission in turns: what a body needs of `edge.admit` and `edge.sound`, without keeping other requests waiting."""

import asyncio
import time
from typing import Final

from msgspec import Raw

from edge.admit import STRICT, Refused, Rules, admit, checked_text, open_batch_slowly, split_batch
from edge.sound import cut, sound_ids
from edge.turns import Turns
from schemas.errors import RejectedEvent, WireError

Admitted = tuple[str, bytes | Raw]
"""An event's id in lower case and the bytes to forward."""

_LARGE_BYTES: Final = 65_536
"""From here on a body's slow path leaves the loop to others, in a thread."""
_SLICE_SECONDS: Final = 0.004
"""Longest that a batch works at a stretch."""
_AT_ONCE: Final = 20
"""Events between two looks at the clock, where all are sound."""


class _Stretch:
    """The time since other requests had their turn."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._end = time.perf_counter() + _SLICE_SECONDS

    @property
    def over(self) -> bool:
        """Whether it has been long enough."""
        return time.perf_counter() > self._end

    async def pause(self) -> None:
        """Let others go first."""
        await self._turns.mine()
        self._end = time.perf_counter() + _SLICE_SECONDS


async def admit_single(body: bytes, rules: Rules) -> Admitted:
    """The event that a body is. Raises Refused."""
    return await _admit(checked_text(body), rules)


async def admit_batch(body: bytes, rules: Rules, turns: Turns) -> tuple[list[Admitted], list[RejectedEvent]]:
    """The events of a batch that are admitted, in their order, and the others. Raises Refused for a bad wrapper."""
    if rules is STRICT:
        sound = await _admit_sound(body, turns)
        if sound is not None:
            return sound, []
    return await admit_each(body, rules, turns)


async def admit_each(body: bytes, rules: Rules, turns: Turns) -> tuple[list[Admitted], list[RejectedEvent]]:
    """The same by the way that any batch can take."""
    return await _admit_all(await _open_batch(checked_text(body)), rules, turns)


async def _admit_sound(body: bytes, turns: Turns) -> list[Admitted] | None:
    events = cut(body)
    if events is None or max(map(len, events)) >= _LARGE_BYTES:
        return None
    stretch = _Stretch(turns)
    ids: list[str] = []
    for first in range(0, len(events), _AT_ONCE):
        found = sound_ids(events[first : first + _AT_ONCE])
        if found is None:
            return None
        ids += found
        if stretch.over:
            await stretch.pause()
    return list(zip(ids, events, strict=True))


async def _admit_all(
    events: list[Raw], rules: Rules, turns: Turns
) -> tuple[list[Admitted], list[RejectedEvent]]:
    admitted: list[Admitted] = []
    rejected: list[RejectedEvent] = []
    stretch = _Stretch(turns)
    for index, raw in enumerate(events):
        try:
            admitted.append(admit(raw, rules) if len(raw) < _LARGE_BYTES else await _admit(raw, rules))
        except Refused as refused:
            rejected.append(RejectedEvent(index, WireError.VALIDATION_FAILED.code, refused.details))
        if stretch.over:
            await stretch.pause()
    return admitted, rejected


async def _admit(event: bytes | Raw, rules: Rules) -> Admitted:
    if len(event) < _LARGE_BYTES:
        return admit(event, rules)
    return await asyncio.to_thread(admit, event, rules)


async def _open_batch(body: bytes) -> list[Raw]:
    events = split_batch(body)
    if events is not None:
        return events
    if len(body) < _LARGE_BYTES:
        return open_batch_slowly(body)
    return await asyncio.to_thread(open_batch_slowly, body)
