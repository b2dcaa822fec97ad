"""Replaces events that are nested too deeply. Pure.

The wrapper and the other events of a batch can then be decoded. A decoder fails at the interpreter's
recursion limit, without a position. So brackets are counted here, without a stack: one regex match skips
values of a few levels, and only deeper values take a step for each run of brackets. The work is linear in the
body's length, and bounded.
"""

import re
from typing import Final

from schemas.limits import MAX_DEPTH

_LEVELS: Final = 4
"""Levels that one match skips: an error with its frames and their lines."""
_MATCH_BYTES: Final = 16_384
"""Limit of one match, during which other threads wait."""
_MAX_STEPS: Final = 20_000
"""A batch of 100 large events takes a few hundred."""
_EVENT_DEPTH: Final = 2
"""The brackets around an event: the wrapper's and the list's."""

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PLAIN: Final = rb'[^\[\]{}"]++|' + _STRING


def _skipping(levels: int) -> bytes:
    inner = _PLAIN
    for _ in range(levels):
        inner = _PLAIN + rb"|[\[{](?:" + inner + rb")*+[\]}]"
    return rb"(?:" + inner + rb"){0,1000}+(?:([\[{]++)|([\]}]++))?"


_outside: Final = re.compile(_skipping(0), re.DOTALL).match
_long_string: Final = re.compile(_STRING, re.DOTALL).match
_inside: Final = re.compile(_skipping(_LEVELS), re.DOTALL).match


def replace_deep_events(body: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """The wrapper with each event that is too deep replaced by a JSON string, and the events by those strings.

    A body that isn't JSON, or would take too long to scan, is returned unchanged.
    """
    parts: list[bytes] = []
    too_deep_events: dict[bytes, bytes] = {}
    end = 0
    for start, stop in _deep_events(body):
        text = b'"nested too deeply: %d"' % len(too_deep_events)
        too_deep_events[text] = body[start:stop]
        parts += [body[end:start], text]
        end = stop
    return b"".join([*parts, body[end:]]), too_deep_events


def _deep_events(body: bytes) -> list[tuple[int, int]]:
    deep: list[tuple[int, int]] = []
    offset = depth = start = deepest = 0
    for _ in range(_MAX_STEPS):
        match = _inside if depth >= _EVENT_DEPTH else _outside
        step = match(body, offset, offset + _MATCH_BYTES)
        assert step is not None
        if step.end() == offset:
            step = _long_string(body, offset)
            if step is None:
                break
            offset = step.end()
            continue
        offset = step.end()
        if step[1]:
            if depth <= _EVENT_DEPTH < depth + len(step[1]):
                start, deepest = step.start(1) + _EVENT_DEPTH - depth, 0
            depth += len(step[1])
            deepest = max(deepest, depth)
        elif step[2]:
            after = depth - len(step[2])
            if after <= _EVENT_DEPTH < depth and deepest > _EVENT_DEPTH + MAX_DEPTH:
                deep.append((start, step.start(2) + depth - _EVENT_DEPTH))
            depth = after
    return deep if offset == len(body) and depth == 0 else []
