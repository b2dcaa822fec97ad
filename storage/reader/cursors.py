"""Cursors: where the last page ended, as one opaque word."""

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from schemas.ids import hex64
from storage.query.values import LATEST
from storage.reader.answers import Sort
from storage.reader.errors import BadQuery
from storage.reader.ranges import Range

Ms = Annotated[int, Meta(ge=0, lt=LATEST)]
Key = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Hex128 = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


MARK = 0xFFFF_FFFF
MAX_GIVEN = 800
"""Issues that a cursor remembers: more would not fit into a URL."""


class IssueCursor(Struct, array_like=True, frozen=True):
    """The order, the range as the first page saw it (Unix ms), and the lowest key and id that were given.

    An issue can climb above that place before it was given. Hence `given`: the last four bytes of each issue that was. What is
    above and not among them is given next. After more than `MAX_GIVEN` a list goes on by key and id alone, and `given` is None.
    """

    sort: Sort
    start: Ms
    end: Ms | None
    now_ms: Ms
    key: Key
    issue: Hex64
    given: Annotated[bytes, Meta(max_length=4 * MAX_GIVEN)] | None = None

    @property
    def marks(self) -> list[int] | None:
        """The last four bytes of each issue that was given, as numbers, while they are known."""
        if self.given is None or len(self.given) % 4:
            return None
        return [mark for (mark,) in struct.iter_unpack(">I", self.given)]

    def after(self, key: int, issues: Sequence[int]) -> "IssueCursor":
        """The cursor after one more page; `key` is that of its last issue."""
        lowest = min((self.key, self.issue), (key, hex64(issues[-1])))
        return replace(self, key=lowest[0], issue=lowest[1], given=_remembered(self.given, issues))


def first_cursor(sort: Sort, span: Range, now_ms: int, key: int, issues: Sequence[int]) -> IssueCursor:
    """The cursor after the first page."""
    return IssueCursor(sort, span.start, span.end, now_ms, key, hex64(issues[-1]), _remembered(b"", issues))


def _remembered(given: bytes | None, issues: Sequence[int]) -> bytes | None:
    if given is None or len(given) // 4 + len(issues) > MAX_GIVEN:
        return None
    return given + b"".join(struct.pack(">I", issue & MARK) for issue in issues)


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


class ReleaseCursor(Struct, array_like=True, frozen=True):
    """First event (Unix ms) and name of the last release."""

    time: Ms
    release: str


C = TypeVar("C", bound=Struct)


def write_cursor(cursor: Struct) -> str:
    """The cursor as text for a URL."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def read_cursor(text: str | None, kind: type[C]) -> C | None:
    """The cursor that was written, or None without one. Raises BadQuery for any other text."""
    if not text:
        return None
    try:
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadQuery("cursor", "a nextCursor of the same list") from None
