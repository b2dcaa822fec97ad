"""Cursors: the end of the last page, as an opaque text."""

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Annotated, Final, Self, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from query.values import LATEST
from schemas.ids import hex64
from schemas.read_api import Sort
from storage.errors import BadQuery
from storage.read.query.ranges import Range

Ms = Annotated[int, Meta(ge=0, lt=LATEST)]
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
Key = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Hex128 = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]

MAX_GIVEN: Final = 500
"""Issues that a cursor lists; more would exceed the URL length that proxies accept."""
_NUMBER: Final = struct.Struct(">Q")


class IssueCursor(Struct, array_like=True, frozen=True):
    """The order, the range of the first page (Unix ms), and the lowest key and id returned so far.

    An issue can move up before its page is read, and down after. Hence `given` lists the issues returned so
    far, eight bytes each, and the next page excludes them. After `MAX_GIVEN` issues `given` is None, and
    paging continues by key and id alone.

    `offset` issues were returned so far. `total` and `is_bound` are from the first page.
    """

    sort: Sort
    start: Ms
    end: Ms | None
    now_ms: Ms
    key: Key
    issue: Hex64
    given: Annotated[bytes, Meta(max_length=_NUMBER.size * MAX_GIVEN)] | None
    offset: Count
    total: Count
    is_bound: bool

    @classmethod
    def begin(cls, sort: Sort, span: Range, now_ms: int, total: int = 0, *, is_bound: bool = True) -> Self:
        """The cursor before the first page."""
        return cls(sort, span.start, span.end, now_ms, 1 << 62, "f" * 16, b"", 0, total, is_bound)

    @property
    def issues(self) -> list[int] | None:
        """The issues returned so far, or None if there are too many."""
        if self.given is None or len(self.given) % _NUMBER.size:
            return None
        return [issue for (issue,) in _NUMBER.iter_unpack(self.given)]

    def after(self, key: int, issues: Sequence[int]) -> "IssueCursor":
        """The cursor after another page; `key` is the sort key of its last issue."""
        lowest = min((self.key, self.issue), (key, hex64(issues[-1])))
        return replace(
            self,
            key=lowest[0],
            issue=lowest[1],
            given=_extended(self.given, issues),
            offset=self.offset + len(issues),
        )


def _extended(given: bytes | None, issues: Sequence[int]) -> bytes | None:
    if given is None or len(given) // _NUMBER.size + len(issues) > MAX_GIVEN:
        return None
    return given + b"".join(map(_NUMBER.pack, issues))


class EventCursor(Struct, array_like=True, frozen=True):
    """The range of the first page (Unix ms), and time and id of the last event."""

    start: Ms
    end: Ms | None
    now_ms: Ms
    time: Ms
    event: Hex128


class ActivityCursor(Struct, array_like=True, frozen=True):
    """Time (Unix ms), users reached and id of the last change."""

    time: Ms
    users: Count
    id: str


class ChangeCursor(Struct, array_like=True, frozen=True):
    """Time (Unix ms) and id of the last change of a project."""

    time: Ms
    id: str


class ReleaseCursor(Struct, array_like=True, frozen=True):
    """Time of the first event (Unix ms) and name of the last release."""

    time: Ms
    release: str


C = TypeVar("C", bound=Struct)


def write_cursor(cursor: Struct) -> str:
    """The cursor as text for a URL."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def read_cursor(text: str | None, kind: type[C]) -> C | None:
    """The cursor of a text from `write_cursor`, or None for an empty text.

    Raises BadQuery for any other text.
    """
    if not text:
        return None
    try:
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadQuery("cursor", "a nextCursor of the same list") from None
