"""Repairs of an event before it is forwarded (contract, section 2, point 6); all other bytes stay as sent.

A megabyte can need 170,000 repairs. So one call makes many of them, and the text is processed in pieces: no call blocks
other threads for more than a few milliseconds.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from schemas.event import MAX_INTEGER

INTEGER_FIELDS: Final = ("line", "column", "status", "durationMs")
"""The integer fields of the schema."""
_PIECE_BYTES: Final = 65_536
_MAX_NUMBERS: Final = 5_000
"""More than a valid event can have: two in each of 100 breadcrumbs and of 100 frames in each of 11 errors."""
_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE: Final = re.compile(_HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW)
_PAIR: Final = re.compile(_HIGH + _LOW)
_PAIR_BYTES: Final = len(rb"\ud83d\ude00")
_REPLACEMENT: Final = rb"\\ufffd"
_BACKSLASH: Final = rb"\\"
_PLACEHOLDER: Final = b"\0\0"
"""Replaces an escaped backslash; JSON never contains these bytes."""
# In valid JSON a backslash precedes a quote within a string, so this matches a name and its value, never part
# of a string.
_FRACTION: Final = re.compile(
    rb'("(?:' + "|".join(INTEGER_FIELDS).encode() + rb')"[ \t\r\n]*+:[ \t\r\n]*+-?)'
    rb"([0-9]++(?=[.eE])(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
)

_encode: Final = msgspec.json.Encoder().encode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def has_surrogates(text: bytes) -> bool:
    """Whether JSON text may contain a surrogate escape, alone or in a pair."""
    return _SURROGATE.search(text) is not None


def replace_lone_surrogates(text: bytes) -> bytes:
    """Replace each lone surrogate escape of valid JSON text, also in keys, by that of U+FFFD.

    Other text is returned unchanged.
    """
    if _PLACEHOLDER[:1] in text:
        return text
    # Without escaped backslashes, every backslash starts an escape: `\\ud83d` was a backslash and five letters.
    marked = text.replace(_BACKSLASH, _PLACEHOLDER)
    parts = [_LONE.sub(_REPLACEMENT, marked[start:end]) for start, end in _between_escapes(marked)]
    return b"".join(parts).replace(_PLACEHOLDER, _BACKSLASH)


def _between_escapes(text: bytes) -> Iterator[tuple[int, int]]:
    """Pieces of a text that split no escape and no pair."""
    start = 0
    while start < len(text):
        end = text.find(b"\\", start + _PIECE_BYTES)
        if end >= 0 and _PAIR.match(text, end - _PAIR_BYTES // 2):
            end += _PAIR_BYTES // 2
        end = end if end >= 0 else len(text)
        yield start, end
        start = end


def with_id(event: bytes | Raw, event_id: str) -> bytes:
    """The event with its `id` in lower case; if that needs a decode, a repeated name keeps its last value."""
    text, old, new = bytes(event), _encode(event_id), _encode(event_id.lower())
    matches = re.findall(rb'"id"[ \t\r\n]*+:[ \t\r\n]*+' + old, text)
    if len(matches) == text.count(old) == 1:
        return text.replace(old, new)
    fields = _decode_fields(text)
    fields["id"] = Raw(new)
    return _encode(fields)


def with_whole_numbers(event: bytes) -> bytes:
    """Write `1.0` as `1` in the integer fields of valid JSON text: the same value, as every decoder accepts it.

    All other bytes are unchanged. A name written with escapes isn't recognized.
    """
    parts = []
    remaining = _MAX_NUMBERS
    for start, end in _between_values(event):
        part, changed = _FRACTION.subn(_without_fraction, event[start:end], remaining)
        parts.append(part)
        remaining -= changed
        if not remaining:
            return b"".join([*parts, event[end:]])
    return b"".join(parts)


def _between_values(text: bytes) -> Iterator[tuple[int, int]]:
    """Pieces of a text that end before a comma: no name is separated from its number."""
    start = 0
    while start < len(text):
        end = text.find(b",", start + _PIECE_BYTES)
        end = end if end >= 0 else len(text)
        yield start, end
        start = end


def _without_fraction(match: re.Match[bytes]) -> bytes:
    value = float(match[2])
    return b"%b%d" % (match[1], int(value)) if value.is_integer() and value <= MAX_INTEGER else match[0]
