"""Cursors: where the last page ended, as one opaque word."""

import base64
import binascii
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from storage.query.values import LATEST
from storage.reader.answers import Sort
from storage.reader.errors import BadQuery

Ms = Annotated[int, Meta(ge=0, lt=LATEST)]
Key = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Hex128 = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class IssueCursor(Struct, array_like=True, frozen=True):
    """The order, the range as the first page saw it (Unix ms), and key and id of the last issue."""

    sort: Sort
    start: Ms
    end: Ms | None
    now_ms: Ms
    key: Key
    issue: Hex64


class EventCursor(Struct, array_like=True, frozen=True):
    """The range as the first page saw it (Unix ms), and time and id of the last event."""

    start: Ms
    end: Ms | None
    now_ms: Ms
    time: Ms
    event: Hex128


class ActivityCursor(Struct, array_like=True, frozen=True):
    """Time (Unix ms) and id of the last change."""

    time: Ms
    id: str


C = TypeVar("C", bound=Struct)


def write_cursor(cursor: Struct) -> str:
    """The cursor as text for a URL."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def read_cursor(text: str | None, kind: type[C]) -> C | None:
    """The cursor that was written, or None without one. Raises BadQuery for any other text."""
    if not text:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadQuery("cursor", "a nextCursor of the same list") from None
