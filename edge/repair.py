"""What is mended in an event before it is forwarded (contract, section 2, point 6): the rest of its bytes stay as sent."""

import json
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
    rb"((?:[^\\]++|" + _HIGH + _LOW + rb"|\\(?!u[dD][89a-fA-F]).)*+)(" + _HIGH + rb"|" + _LOW + rb")?",
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
        elif stride.end() < len(text):
            # A backslash that begins no escape: not JSON, and the decoder says so.
            parts.append(text[stride.end() :])
            break
        place = stride.end()
    return b"".join(parts)


def with_id(event: bytes | Raw, event_id: str) -> bytes:
    """The event with another `id`; the other fields keep their bytes, a name that is repeated keeps its last value."""
    fields = _decode_fields(event)
    fields["id"] = Raw(_encode(event_id))
    return _encode(fields)


def with_whole_numbers(event: bytes) -> bytes:
    """The event with `1.0` written `1` wherever it stands: the same value, in the form that every decoder reads as an integer.

    Other numbers keep their digits. Raises ValueError or RecursionError where the event isn't JSON of a usable depth.
    """
    return _encode(json.loads(event.decode(), parse_float=_number, parse_int=_as_written))


def _number(text: str) -> int | Raw:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= MAX_INTEGER else _as_written(text)


def _as_written(text: str) -> Raw:
    return Raw(text.encode())
