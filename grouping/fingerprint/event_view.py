"""The fields of an event that grouping reads: minimal structs, decoded from the event as sent.

Unknown fields are skipped, optional fields may be null (contract, section 2.6), and the edge's checks aren't repeated:
every event that it accepts, from lenient projects too, decodes here. An element of a client's fingerprint that no
decoder holds, such as 1E+400, is its own text.
"""

from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

MAX_ELEMENTS: Final = 1000
"""Elements of a given fingerprint that are read; a megabyte may have half a million."""


class GroupingFrame(Struct, gc=False, rename="camel"):
    """One frame of a stack, top first (protocol, section 2.7); `line` 0 or null means unknown."""

    function: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    in_app: bool | None = None


class OwnFrame(GroupingFrame, gc=False, rename="camel"):
    """A frame that a project's rule marks as in-app, even if its file is a known library's."""


class GroupingError(Struct, gc=False):
    """An error and its chain of causes (protocol, section 2.6)."""

    type: str | None = None
    message: str | None = None
    stack: list[GroupingFrame] | None = None
    cause: "GroupingError | None" = None


class GroupingEvent(Struct, gc=False):
    """The part of an event that decides its group. `fingerprint` is the client's list, elements of any JSON type."""

    error: GroupingError
    platform: str | None = None
    fingerprint: list[Any] | None = None


class IdentifiedEvent(GroupingEvent, gc=False):
    """The same with the event's id, for people who look at the group of each event."""

    id: str | None = None


class _Identified(Struct, gc=False):
    error: GroupingError
    platform: str | None = None
    fingerprint: Raw = Raw(b"null")
    id: str | None = None


_decode: Final = msgspec.json.Decoder(_Identified).decode
_decode_elements: Final = msgspec.json.Decoder(list[Raw] | None).decode
_decode_element: Final = msgspec.json.Decoder(Any).decode


def decode_identified(event: bytes) -> IdentifiedEvent:
    """An event with its id. Raises the errors of msgspec."""
    found = _decode(event)
    return IdentifiedEvent(found.error, found.platform, elements_of(found.fingerprint), found.id)


def elements_of(fingerprint: Raw) -> list[Any] | None:
    """The elements of a client's fingerprint; in too long a list a hash of all replaces the rest."""
    elements = _decode_elements(fingerprint)
    if elements is None:
        return None
    read = [_element(element) for element in elements[:MAX_ELEMENTS]]
    return read if len(read) == len(elements) else [*read, digest(bytes(fingerprint))]


def digest(data: bytes) -> str:
    """16 digits that differ where data does."""
    return blake2b(data, digest_size=8).hexdigest()


def _element(element: Raw) -> Any:
    try:
        return _decode_element(element)
    except msgspec.ValidationError:
        return bytes(element).decode()
