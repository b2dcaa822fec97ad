"""Setting aside what is nested too deeply in a batch, so that its wrapper and the other events can be read. Pure.

A decoder gives up at a depth that the interpreter sets, and tells no place. So brackets are counted here, without a
stack: values of a few levels are passed over in one stride, and only what is deeper takes a step for each run of brackets.
The work is linear in the body's length, and bounded.
"""

import re
from typing import Final

from schemas.limits import MAX_DEPTH

_LEVELS: Final = 4
"""Levels that one stride passes over: an error with its frames and their lines."""
_STRIDE_BYTES: Final = 16_384
"""Other threads wait while a stride is made."""
_MOST_STEPS: Final = 20_000
"""A batch of 100 great events takes a few hundred."""
_ITEM: Final = 2
"""The brackets around an item: those of the wrapper and of its list."""

_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PLAIN: Final = rb'[^\[\]{}"]++|' + _TEXT


def _strides(levels: int) -> bytes:
    inner = _PLAIN
    for _ in range(levels):
        inner = _PLAIN + rb"|[\[{](?:" + inner + rb")*+[\]}]"
    return rb"(?:" + inner + rb"){0,1000}+(?:([\[{]++)|([\]}]++))?"


_outside: Final = re.compile(_strides(0), re.DOTALL).match
_long_text: Final = re.compile(_TEXT, re.DOTALL).match
_inside: Final = re.compile(_strides(_LEVELS), re.DOTALL).match


def cut_deep(body: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """A wrapper with each item that is too deep replaced by a text, and the items by those texts as they stand there.

    What isn't JSON, or would take too long to look through, comes back as it is.
    """
    parts: list[bytes] = []
    too_deep_events: dict[bytes, bytes] = {}
    end = 0
    for start, stop in _deep_items(body):
        text = b'"nested too deeply: %d"' % len(too_deep_events)
        too_deep_events[text] = body[start:stop]
        parts += [body[end:start], text]
        end = stop
    return b"".join([*parts, body[end:]]), too_deep_events


def _deep_items(body: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    place = depth = start = deepest = 0
    for _ in range(_MOST_STEPS):
        match = _inside if depth >= _ITEM else _outside
        step = match(body, place, place + _STRIDE_BYTES)
        assert step is not None
        if step.end() == place:
            step = _long_text(body, place)
            if step is None:
                break
            place = step.end()
            continue
        place = step.end()
        if step[1]:
            if depth <= _ITEM < depth + len(step[1]):
                start, deepest = step.start(1) + _ITEM - depth, 0
            depth += len(step[1])
            deepest = max(deepest, depth)
        elif step[2]:
            after = depth - len(step[2])
            if after <= _ITEM < depth and deepest > _ITEM + MAX_DEPTH:
                found.append((start, step.start(2) + depth - _ITEM))
            depth = after
    return found if place == len(body) and depth == 0 else []
