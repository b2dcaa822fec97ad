"""How deep JSON text is nested: a limit of our own, since that of a decoder is the interpreter's and differs by its version. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from schemas.limits import MAX_DEPTH

_BRACKETS_AND_QUOTES: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS: Final = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else byte for byte in range(256))
_EMPTY: Final = b"\x01\xff"
_RUNS: Final = re.compile(rb"\x01+|\xff+").finditer
_WORTHWHILE: Final = 7 / 8
"""Where taking a level away leaves more than this part, brackets stand in long runs, which are quickly counted."""
_SLICE: Final = 16_384
"""Other threads wait while a slice is counted."""


def is_deep(text: bytes) -> bool:
    """Whether JSON text is nested deeper than the limit. Linear in its length; of what isn't JSON it says one or the other."""
    # Few events have as many brackets, and counting them is quick.
    return text.count(b"[") + text.count(b"{") > MAX_DEPTH and depth_exceeds(text, MAX_DEPTH)


def depth_exceeds(text: bytes, limit: int) -> bool:
    """The same for any limit."""
    brackets, left = _brackets(text), limit
    while brackets and left:
        # Takes the innermost level away.
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
    """The brackets outside of texts, an opening one as 1 and a closing one as 255."""
    if b"\\" in text:
        # Pairs first: what is left before a quote escapes it.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(None, _BRACKETS_AND_QUOTES).replace(b'""', b"")
    return b"".join(_outside(marks)).translate(_STEPS)


def _outside(marks: bytes) -> Iterator[bytes]:
    """What stands between a closing quote and the next opening one."""
    inside = 0
    for place in range(0, len(marks), _SLICE):
        pieces = marks[place : place + _SLICE].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) & 1
