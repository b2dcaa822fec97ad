"""Decodes the fields of an event's JSON that have columns: strictly first, loosely for irregular events."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from isal import isal_zlib
from msgspec import Raw, Struct

from schemas.errors import Unreadable

MAX_PLACES: Final = 64
"""Maximum number of files, and of functions, that an event is indexed by."""
_CACHED_STACKS: Final = 4096
_CACHED_DEVICES: Final = 16_384
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class FramePlaces(Struct, gc=False, frozen=True, eq=False):
    """Distinct files and functions of frames in their order."""

    files: tuple[str, ...]
    functions: tuple[str, ...]


class _FrameFields(Struct, gc=False):
    file: str
    function: str | None = None


class _ErrorFields(Struct, gc=False):
    type: str
    message: str
    stack: Raw
    cause: "_ErrorFields | None" = None


class DeviceFields(Struct, gc=False, frozen=True):
    """The fields of `device` that have columns."""

    os: str
    osVersion: str
    model: str | None = None
    locale: str | None = None


class _UserFields(Struct, gc=False):
    id: str | None = None


class EventFields(Struct, gc=False):
    """The fields of an event that are separate columns."""

    timestamp: datetime
    kind: str
    platform: str
    release: str
    environment: str
    raw_device: Raw = msgspec.field(name="device")
    error: _ErrorFields
    user: _UserFields | None = None
    tags: dict[str, str] | None = None

    @property
    def device(self) -> DeviceFields:
        """The device; equal devices share a cached object."""
        return _device(bytes(self.raw_device))

    def places(self) -> FramePlaces:
        """Distinct files and functions of all frames, including those of causes, outermost error first.

        Events with the same stacks have the same object for a while.
        """
        error = self.error
        places = _places(bytes(error.stack))
        return places if error.cause is None else _merged(places, error.cause)


_decode: Final = msgspec.json.Decoder(EventFields).decode
_decode_device: Final = msgspec.json.Decoder(DeviceFields).decode
_decode_frames: Final = msgspec.json.Decoder(list[_FrameFields]).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


@lru_cache(_CACHED_DEVICES)
def _device(device: bytes) -> DeviceFields:
    try:
        return _decode_device(device)
    except msgspec.ValidationError:
        fields = _dict(_decode_any(device))
        return DeviceFields(*(_text(fields.get(name)) for name in DeviceFields.__struct_fields__))


_known_stacks: Final[dict[int, tuple[bytes, FramePlaces]]] = {}
_known_chains: Final[dict[tuple[int, ...], tuple[list[FramePlaces], FramePlaces]]] = {}


def _places(stack: bytes) -> FramePlaces:
    # An issue's events share their stack, and its frames are half of the decoding. The stack is looked up by
    # a checksum and then compared: a dictionary's own hash of 2 KB takes six times as long.
    key = isal_zlib.crc32(stack)
    known = _known_stacks.get(key)
    if known is not None and known[0] == stack:
        return known[1]
    places = _read_places(stack)
    if len(_known_stacks) >= _CACHED_STACKS:
        _known_stacks.clear()
    _known_stacks[key] = (stack, places)
    return places


def _merged(outermost: FramePlaces, cause: _ErrorFields) -> FramePlaces:
    chain, error = [outermost], cause
    while True:
        chain.append(_places(bytes(error.stack)))
        if error.cause is None:
            break
        error = error.cause
    # The cache holds the chain, so that its ids can't be reused by other objects.
    key = tuple(map(id, chain))
    known = _known_chains.get(key)
    if known is not None:
        return known[1]
    files: dict[str, None] = {}
    functions: dict[str, None] = {}
    for one in chain:
        files |= dict.fromkeys(one.files)
        functions |= dict.fromkeys(one.functions)
    places = _bounded(files, functions)
    if len(_known_chains) >= _CACHED_STACKS:
        _known_chains.clear()
    _known_chains[key] = (chain, places)
    return places


def _read_places(stack: bytes) -> FramePlaces:
    try:
        frames = _decode_frames(stack)
    except msgspec.ValidationError:
        frames = [_loose_frame(frame) for frame in _list(_decode_any(stack))]
    files = dict.fromkeys(frame.file for frame in frames)
    return _bounded(files, dict.fromkeys(frame.function for frame in frames if frame.function))


def _bounded(files: Iterable[str], functions: Iterable[str]) -> FramePlaces:
    return FramePlaces(tuple(files)[:MAX_PLACES], tuple(functions)[:MAX_PLACES])


def extract(event: bytes) -> EventFields:
    """The fields of an event's JSON. Raises Unreadable if it isn't a JSON object.

    An event that was accepted but isn't of the strict form (by looser rules of some project, or of an older
    edge) is kept. Its unreadable fields are empty, and its time is that of receipt.
    """
    try:
        return _decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _loose(event)


def _loose(event: bytes) -> EventFields:
    try:
        fields = _decode_any(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    if not isinstance(fields, dict):
        raise Unreadable("not a JSON object")
    user, tags = _dict(fields.get("user")), _dict(fields.get("tags"))
    return EventFields(
        timestamp=_time(fields.get("timestamp")),
        kind=_text(fields.get("kind")),
        platform=_text(fields.get("platform")),
        release=_text(fields.get("release")),
        environment=_text(fields.get("environment")),
        raw_device=Raw(_encode(fields.get("device"))),
        error=_loose_error(fields.get("error")),
        user=_UserFields(id=_text(user.get("id")) or None),
        tags={key: _text(value) for key, value in tags.items()},
    )


def _loose_error(value: object) -> _ErrorFields:
    errors: list[dict[str, Any]] = []
    while isinstance(value, dict) and len(errors) < MAX_PLACES:
        errors.append(value)
        value = value.get("cause")
    outer: _ErrorFields | None = None
    for error in reversed(errors):
        outer = _ErrorFields(
            _text(error.get("type")), _text(error.get("message")), Raw(_encode(error.get("stack"))), outer
        )
    return outer or _ErrorFields("", "", Raw(b"[]"))


def _loose_frame(value: object) -> _FrameFields:
    frame = _dict(value)
    return _FrameFields(_text(frame.get("file")), _text(frame.get("function")) or None)


def _time(value: object) -> datetime:
    try:
        moment = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return _EPOCH
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _encode(value).decode()


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
