"""What is mended in an event before it is forwarded (contract, section 2, point 6): the rest of its bytes stay as sent.

A megabyte can hold 170,000 things to mend. So each is mended by one call for many of them, and the text is worked off in
pieces: no call keeps other threads waiting for more than a few milliseconds.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from schemas.event import MAX_INTEGER

INTEGER_FIELDS: Final = ("line", "column", "status", "durationMs")
"""Where the schema asks for an integer."""
_PIECE_BYTES: Final = 65_536
_MOST_NUMBERS: Final = 5_000
"""More than an event has at every limit of the schema: 100 frames in each of 11 errors, 100 breadcrumbs, two in each."""
_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE: Final = re.compile(_HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW)
_PAIR: Final = re.compile(_HIGH + _LOW)
_PAIR_BYTES: Final = len(rb"\ud83d\ude00")
_REPLACEMENT: Final = rb"\\ufffd"
_BACKSLASH: Final = rb"\\"
_ASIDE: Final = b"\0\0"
"""Stands for a backslash that is no escape's beginning; JSON has no such bytes."""
# In valid JSON a quote within a text has a backslash before it, so this is a name and its value, never part of a text.
_FRACTION: Final = re.compile(
    rb'("(?:' + "|".join(INTEGER_FIELDS).encode() + rb')"[ \t\r\n]*+:[ \t\r\n]*+-?)'
    rb"([0-9]++(?=[.eE])(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
)

_encode: Final = msgspec.json.Encoder().encode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def has_surrogates(text: bytes) -> bool:
    """Whether a surrogate escape may stand in JSON text, alone or in a pair."""
    return _SURROGATE.search(text) is not None


def replace_lone_surrogates(text: bytes) -> bytes:
    """Valid JSON text with each lone surrogate escape, in keys too, replaced by that of U+FFFD; other text as it is."""
    if _ASIDE[:1] in text:
        return text
    # Pairs of backslashes gone, every one that is left begins an escape: `\\ud83d` was a backslash and six letters.
    marked = text.replace(_BACKSLASH, _ASIDE)
    parts = [_LONE.sub(_REPLACEMENT, marked[start:end]) for start, end in _between_escapes(marked)]
    return b"".join(parts).replace(_ASIDE, _BACKSLASH)


def _between_escapes(text: bytes) -> Iterator[tuple[int, int]]:
    """Pieces of a text in which no escape and no pair of them is cut."""
    start = 0
    while start < len(text):
        end = text.find(b"\\", start + _PIECE_BYTES)
        if end >= 0 and _PAIR.match(text, end - _PAIR_BYTES // 2):
            end += _PAIR_BYTES // 2
        end = end if end >= 0 else len(text)
        yield start, end
        start = end


def with_id(event: bytes | Raw, event_id: str) -> bytes:
    """The event with its `id` in lower case; where that isn't plain to see a name that is repeated keeps its last value."""
    text, old, new = bytes(event), _encode(event_id), _encode(event_id.lower())
    found = re.findall(rb'"id"[ \t\r\n]*+:[ \t\r\n]*+' + old, text)
    if len(found) == text.count(old) == 1:
        return text.replace(old, new)
    fields = _decode_fields(text)
    fields["id"] = Raw(new)
    return _encode(fields)


def with_whole_numbers(event: bytes) -> bytes:
    """Valid JSON text with `1.0` written `1` where a name is one of an integer's: the same value, in the form that every decoder reads.

    Everything else, other numbers too, keeps its bytes. A name written with escapes isn't seen.
    """
    parts = []
    left = _MOST_NUMBERS
    for start, end in _between_values(event):
        part, changed = _FRACTION.subn(_without_fraction, event[start:end], left)
        parts.append(part)
        left -= changed
        if not left:
            return b"".join([*parts, event[end:]])
    return b"".join(parts)


def _between_values(text: bytes) -> Iterator[tuple[int, int]]:
    """Pieces of a text that end before a comma: no name is parted from its number."""
    start = 0
    while start < len(text):
        end = text.find(b",", start + _PIECE_BYTES)
        end = end if end >= 0 else len(text)
        yield start, end
        start = end


def _without_fraction(found: re.Match[bytes]) -> bytes:
    value = float(found[2])
    return b"%b%d" % (found[1], int(value)) if value.is_integer() and value <= MAX_INTEGER else found[0]
