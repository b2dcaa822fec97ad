"""What the columns need of one event's JSON: a decode of those fields alone, strict first and loose where an event is odd."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

MAX_PLACES: Final = 64
"""Most files, and most functions, that one event is indexed by."""
_CACHED_STACKS: Final = 4096
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Unreadable(Exception):
    """The bytes are not an event at all."""


class _Frame(Struct, gc=False):
    file: str
    function: str | None = None


class _Error(Struct):
    type: str
    message: str
    stack: Raw
    cause: "_Error | None" = None


class _Device(Struct, gc=False):
    os: str
    osVersion: str
    model: str | None = None
    locale: str | None = None


class _User(Struct, gc=False):
    id: str | None = None


class Extract(Struct):
    """The fields of an event that have columns of their own."""

    timestamp: datetime
    kind: str
    platform: str
    release: str
    environment: str
    device: _Device
    error: _Error
    user: _User | None = None
    tags: dict[str, str] | None = None

    def places(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Distinct files and functions of all frames, those of the causes included, outermost error first."""
        error = self.error
        found = _places(bytes(error.stack))
        if error.cause is None:
            return found
        files, functions = dict.fromkeys(found[0]), dict.fromkeys(found[1])
        cause: _Error | None = error.cause
        while cause is not None:
            more_files, more_functions = _places(bytes(cause.stack))
            files |= dict.fromkeys(more_files)
            functions |= dict.fromkeys(more_functions)
            cause = cause.cause
        return tuple(files)[:MAX_PLACES], tuple(functions)[:MAX_PLACES]


_decode: Final = msgspec.json.Decoder(Extract).decode
_decode_frames: Final = msgspec.json.Decoder(list[_Frame]).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


@lru_cache(_CACHED_STACKS)
def _places(stack: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # Cached by the stack's bytes: an issue's events share their stack, and its frames are half of the decoding.
    try:
        frames = _decode_frames(stack)
    except msgspec.ValidationError:
        frames = [_loose_frame(frame) for frame in _list(_decode_any(stack))]
    files = dict.fromkeys(frame.file for frame in frames)
    functions = dict.fromkeys(frame.function for frame in frames if frame.function)
    return tuple(files)[:MAX_PLACES], tuple(functions)[:MAX_PLACES]


def extract(event: bytes) -> Extract:
    """The fields of an event's JSON. Raises Unreadable when it isn't a JSON object.

    An event that was accepted but isn't of the strict form (by looser rules of some project, or of an older edge) is kept:
    what can't be read of it is empty, and its time that of receipt.
    """
    try:
        return _decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _loose(event)


def _loose(event: bytes) -> Extract:
    try:
        found = _decode_any(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    if not isinstance(found, dict):
        raise Unreadable("not a JSON object")
    device, user, tags = _dict(found.get("device")), _dict(found.get("user")), _dict(found.get("tags"))
    return Extract(
        timestamp=_time(found.get("timestamp")),
        kind=_text(found.get("kind")),
        platform=_text(found.get("platform")),
        release=_text(found.get("release")),
        environment=_text(found.get("environment")),
        device=_Device(
            os=_text(device.get("os")),
            osVersion=_text(device.get("osVersion")),
            model=_text(device.get("model")),
            locale=_text(device.get("locale")),
        ),
        error=_loose_error(found.get("error")),
        user=_User(id=_text(user.get("id")) or None),
        tags={key: _text(value) for key, value in tags.items()},
    )


def _loose_error(found: object) -> _Error:
    errors: list[dict[str, Any]] = []
    while isinstance(found, dict) and len(errors) < MAX_PLACES:
        errors.append(found)
        found = found.get("cause")
    outer: _Error | None = None
    for one in reversed(errors):
        outer = _Error(
            _text(one.get("type")), _text(one.get("message")), Raw(_encode(one.get("stack"))), outer
        )
    return outer or _Error("", "", Raw(b"[]"))


def _loose_frame(found: object) -> _Frame:
    frame = _dict(found)
    return _Frame(_text(frame.get("file")), _text(frame.get("function")) or None)


def _time(found: object) -> datetime:
    try:
        moment = msgspec.convert(found, datetime)
    except msgspec.ValidationError:
        return _EPOCH
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(found: object) -> str:
    if found is None:
        return ""
    return found if isinstance(found, str) else _encode(found).decode()


def _dict(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []
