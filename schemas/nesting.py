"""Checks the nesting depth of JSON text, because decoders' own limits depend on the interpreter's version. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from schemas.limits import MAX_DEPTH

_BRACKETS_AND_QUOTES: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS: Final = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else byte for byte in range(256))
_EMPTY: Final = b"\x01\xff"
_RUNS: Final = re.compile(rb"\x01+|\xff+").finditer
_WORTHWHILE: Final = 7 / 8
"""If removing a level leaves more than this part, brackets are in long runs, which are fast to count."""
_SLICE: Final = 16_384
"""A slice is counted without releasing the interpreter lock."""


def is_deep(text: bytes) -> bool:
    """Whether JSON text is nested deeper than the limit. Linear in its length; undefined for text that isn't JSON."""
    # Few events have this many brackets, and counting is fast.
    return text.count(b"[") + text.count(b"{") > MAX_DEPTH and depth_exceeds(text, MAX_DEPTH)


def depth_exceeds(text: bytes, limit: int) -> bool:
    """The same for any limit."""
    brackets, left = _brackets(text), limit
    while brackets and left:
        # Removes the innermost level.
        fewer = brackets.replace(_EMPTY, b"")
        if len(fewer) > _WORTHWHILE * len(brackets):
            break
        brackets, left = fewer, left - 1
    depth = 0
    for run in _RUNS(brackets):
        length = run.end() - run.start()
        depth += length if brackets[run.start()] == 1 else -length
        if depth > left:
            return True
    return False


def _brackets(text: bytes) -> bytes:
    """The brackets outside of strings, opening ones as 1 and closing ones as 255."""
    if b"\\" in text:
        # Pairs first: a remaining backslash before a quote escapes it.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    symbols = text.translate(None, _BRACKETS_AND_QUOTES).replace(b'""', b"")
    return b"".join(_outside(symbols)).translate(_STEPS)


def _outside(symbols: bytes) -> Iterator[bytes]:
    """The brackets between a closing quote and the next opening one."""
    inside = 0
    for start in range(0, len(symbols), _SLICE):
        pieces = symbols[start : start + _SLICE].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) & 1
