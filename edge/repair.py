"""What is mended in an event before it is forwarded (contract, section 2, point 6): the rest of its bytes stay as sent."""

import re
from typing import Final

import msgspec
from msgspec import Raw

from schemas.event import MAX_INTEGER

_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
# What stands between two lone surrogates is taken in one stride: plain text, whole pairs, and any other escape. Reading from
# the start, escape by escape, is what tells `\\ud83d` (a backslash and six letters) from `\ud83d`.
_STRIDE: Final = re.compile(
    rb"((?:[^\\]++|" + _HIGH + _LOW + rb"|\\(?!u[dD][89a-fA-F]).){0,1000}+)"
    rb"(" + _HIGH + rb"(?!" + _LOW + rb")|" + _LOW + rb")?",
    re.DOTALL,
)
# A number that may be whole though it has a fraction or an exponent; all before it, texts too, is taken in one stride.
_FLOAT: Final = re.compile(
    rb'(?:[^"0-9]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[0-9]++(?![.eE0-9])|[0-9]{1,6}\.[0-9]{0,8}[1-9](?![.eE0-9])){0,1000}+([0-9]++[.eE][0-9.eE+-]*+)?',
    re.DOTALL,
)
_REPLACEMENT: Final = rb"\ufffd"

_encode: Final = msgspec.json.Encoder().encode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def has_surrogates(text: bytes) -> bool:
    """Whether a surrogate escape may stand in JSON text, alone or in a pair."""
    return _SURROGATE.search(text) is not None


def replace_lone_surrogates(text: bytes) -> bytes:
    """Valid JSON text with each lone surrogate escape, in keys too, replaced by that of U+FFFD."""
    parts = []
    place = 0
    while place < len(text):
        stride = _STRIDE.match(text, place)
        assert stride is not None
        parts.append(stride.group(1))
        if stride.group(2):
            parts.append(_REPLACEMENT)
        elif stride.end() == place:
            # A backslash that begins no escape: not JSON, and the decoder says so.
            parts.append(text[place:])
            break
        place = stride.end()
    return b"".join(parts)


def with_id(event: bytes | Raw, event_id: str) -> bytes:
    """The event with another `id`; the other fields keep their bytes, a name that is repeated keeps its last value."""
    fields = _decode_fields(event)
    fields["id"] = Raw(_encode(event_id))
    return _encode(fields)


def with_whole_numbers(event: bytes) -> bytes:
    """Valid JSON text with `1.0` written `1` wherever it stands: the same value, in the form that every decoder reads as an integer.

    Everything else, other numbers too, keeps its bytes.
    """
    parts = []
    place = kept = 0
    while place < len(event):
        stride = _FLOAT.match(event, place)
        assert stride is not None
        if stride.end() == place:
            return event
        place = stride.end()
        if stride[1] and (whole := _whole(stride[1])):
            parts += [event[kept : stride.start(1)], whole]
            kept = place
    return b"".join([*parts, event[kept:]])


def _whole(number: bytes) -> bytes | None:
    value = float(number)
    return b"%d" % int(value) if value.is_integer() and value <= MAX_INTEGER else None
