"""What a query sees of one event, and of the issue that it belongs to."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from schemas.times import event_time, parse_iso, to_ms

MAX_PLACES: Final = 64
"""Distinct files, and distinct functions, that are kept of an event."""
MAX_CAUSES: Final = 32
"""Links of a cause chain that are followed: beyond what any accepted event has."""


class IssueView(Struct, frozen=True, kw_only=True):
    """The issue's side, for its whole life. Times are Unix ms."""

    status: str = "open"
    regressed: bool = False
    assigned: bool = False
    first_seen: int = 0
    last_seen: int = 0
    events: int = 0
    users: int = 0


class EventView(Struct, frozen=True, kw_only=True):
    """The event's side. `""` is an absent field; `timestamp` is the event's time in Unix ms; `issue` is None while unknown."""

    type: str = ""
    message: str = ""
    tags: dict[str, str] = {}
    environment: str = ""
    release: str = ""
    platform: str = ""
    os: str = ""
    os_version: str = ""
    model: str = ""
    locale: str = ""
    sdk: str = ""
    user: str = ""
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    timestamp: int = 0
    issue: IssueView | None = None

    def values(self, key: str) -> tuple[str, ...]:
        """What the event has under a key of `tree.FIELDS`; nothing where the field is absent or empty."""
        if key == "file":
            return tuple(filter(None, self.files))
        if key == "function":
            return tuple(filter(None, self.functions))
        value: str = getattr(self, "os_version" if key == "osVersion" else key)
        return (value,) if value else ()


class _Frame(Struct):
    file: str = ""
    function: str | None = None


class _Error(Struct):
    type: str = ""
    message: str = ""
    stack: list[_Frame] | None = None
    cause: "_Error | None" = None


class _Device(Struct):
    os: str = ""
    osVersion: str = ""
    model: str | None = None
    locale: str | None = None


class _User(Struct):
    id: str | None = None


class _Event(Struct):
    """The event of section 2.1 of the protocol, as far as a query sees it."""

    error: _Error
    device: _Device | None = None
    user: _User | None = None
    tags: dict[str, str] | None = None
    environment: str = ""
    release: str = ""
    platform: str = ""
    timestamp: Any = None


def from_event(event: object, sdk: str, received_ms: int) -> EventView:
    """The view of an event that was admitted, as a mapping or as any struct with the protocol's names.

    Raises msgspec.ValidationError for what is no event.
    """
    seen = msgspec.convert(event, _Event, from_attributes=True)
    device, error = seen.device or _Device(), seen.error
    frames = list(_frames(error))
    return EventView(
        type=error.type,
        message=error.message,
        tags=seen.tags or {},
        environment=seen.environment,
        release=seen.release,
        platform=seen.platform,
        os=device.os,
        os_version=device.osVersion,
        model=device.model or "",
        locale=device.locale or "",
        sdk=sdk,
        user=(seen.user.id if seen.user else None) or "",
        files=distinct(frame.file for frame in frames),
        functions=distinct(frame.function for frame in frames),
        timestamp=_time(seen.timestamp, received_ms),
    )


def from_json(payload: bytes, sdk: str, received_ms: int) -> EventView:
    """The view of an event's bytes as sent. Raises msgspec.DecodeError for what is no event."""
    return from_event(msgspec.json.decode(payload), sdk, received_ms)


def distinct(names: Iterator[str | None]) -> tuple[str, ...]:
    """The first `MAX_PLACES` different names, in their order, without empty ones."""
    found: dict[str, None] = {}
    for name in names:
        if name:
            found[name] = None
            if len(found) == MAX_PLACES:
                break
    return tuple(found)


def _frames(error: _Error) -> Iterator[_Frame]:
    link: _Error | None = error
    for _ in range(MAX_CAUSES):
        if link is None:
            return
        yield from link.stack or ()
        link = link.cause


def _time(timestamp: Any, received_ms: int) -> int:
    try:
        ms = to_ms(timestamp) if isinstance(timestamp, datetime) else parse_iso(str(timestamp))
        return event_time(ms, received_ms)
    except ValueError:
        return received_ms
