"""The event as it travels (protocol, section 2), in the strict form that the fast path decodes.

Fields are spelled as on the wire. `None` stands for both null and absent: the protocol treats them alike for every field
that is not required. Unknown fields are ignored here and kept by forwarding the raw bytes.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from schemas.limits import Limit

UtcTime = Annotated[datetime, Meta(tz=True)]
"""ISO 8601 with an offset; that the offset is zero is checked after decoding."""

ContextLines = Annotated[list[str], Meta(max_length=Limit.CONTEXT_LINES.maximum)]
OneIndexed = Annotated[int, Meta(ge=1)]
Release = Annotated[str, Meta(pattern=r"^[^@]+@[^+]+\+.+$")]
TagKey = Annotated[str, Meta(max_length=Limit.TAG_KEY_LENGTH.maximum)]
TagValue = Annotated[str, Meta(max_length=Limit.TAG_VALUE_LENGTH.maximum)]

Kind = Literal["error"]
Platform = Literal["javascript", "ios", "android", "python"]
"""`python` is added by this server (contract, section 2, point 7)."""
DeviceOs = Literal["ios", "android", "web", "other"]


class Framework(Struct, frozen=True, kw_only=True):
    """Section 2.4."""

    name: str
    version: str


class App(Struct, frozen=True, kw_only=True):
    """Section 2.3."""

    version: str
    build: str | None = None
    framework: Framework | None = None


class Device(Struct, frozen=True, kw_only=True):
    """Section 2.2."""

    os: DeviceOs
    osVersion: str
    model: str | None = None
    locale: str | None = None


class User(Struct, frozen=True, kw_only=True):
    """Section 2.5, with `name` and `linkHashes` as the reporting library sends them (contract, section 5)."""

    id: str | None = None
    anonymous: bool | None = None
    name: str | None = None
    linkHashes: dict[str, str] | None = None


class Frame(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.7. Lines and columns are 1-indexed."""

    file: str
    line: OneIndexed
    inApp: bool
    function: str | None = None
    column: OneIndexed | None = None
    absolutePath: str | None = None
    preContext: ContextLines | None = None
    postContext: ContextLines | None = None


class Error(Struct, frozen=True, kw_only=True):
    """Section 2.6. `stack` has its top first; the depth of `cause` is checked after decoding."""

    type: str
    message: str
    stack: Annotated[list[Frame], Meta(max_length=Limit.FRAMES.maximum)]
    cause: "Error | None" = None


class NavData(Struct, frozen=True, rename={"from_": "from"}):
    """Data of a `nav` breadcrumb (section 2.8); keys may be missing (contract, section 2, point 6)."""

    from_: str | None = None
    to: str | None = None


class NetData(Struct, frozen=True):
    """Data of a `net` breadcrumb."""

    method: str | None = None
    url: str | None = None
    status: int | None = None
    durationMs: int | None = None


class LogData(Struct, frozen=True):
    """Data of a `log` breadcrumb."""

    level: str | None = None
    message: str | None = None


class UserData(Struct, frozen=True):
    """Data of a `user` breadcrumb."""

    action: str | None = None
    target: str | None = None


class NavBreadcrumb(Struct, frozen=True, tag_field="type", tag="nav"):
    """A route change."""

    timestamp: UtcTime
    data: NavData


class NetBreadcrumb(Struct, frozen=True, tag_field="type", tag="net"):
    """A network round-trip."""

    timestamp: UtcTime
    data: NetData


class LogBreadcrumb(Struct, frozen=True, tag_field="type", tag="log"):
    """A line of a log."""

    timestamp: UtcTime
    data: LogData


class UserBreadcrumb(Struct, frozen=True, tag_field="type", tag="user"):
    """An action of the user."""

    timestamp: UtcTime
    data: UserData


class CustomBreadcrumb(Struct, frozen=True, tag_field="type", tag="custom"):
    """Anything the application adds; free-form."""

    timestamp: UtcTime
    data: dict[str, Any]


class TrackBreadcrumb(Struct, frozen=True, tag_field="type", tag="track"):
    """A call of `track()`; a wire type added by this server (contract, section 2, point 7)."""

    timestamp: UtcTime
    data: dict[str, Any]


Breadcrumb = (
    NavBreadcrumb | NetBreadcrumb | LogBreadcrumb | UserBreadcrumb | CustomBreadcrumb | TrackBreadcrumb
)


class Event(Struct, frozen=True, kw_only=True):
    """Section 2.1. That `id` is a uuid of version 7 and offsets are zero is checked after decoding."""

    id: Annotated[str, Meta(min_length=36, max_length=36)]
    timestamp: UtcTime
    kind: Kind
    platform: Platform
    release: Release
    environment: str
    device: Device
    app: App
    error: Error
    user: User | None = None
    tags: Annotated[dict[TagKey, TagValue], Meta(max_length=Limit.TAG_KEYS.maximum)] | None = None
    breadcrumbs: Annotated[list[Breadcrumb], Meta(max_length=Limit.BREADCRUMBS.maximum)] | None = None
    fingerprint: list[Any] | None = None
    traceId: str | None = None
    spanId: str | None = None


class Batch(Struct, frozen=True):
    """Section 2.9: the wrapper alone; each event stays raw so that one bad event fails only itself."""

    events: Annotated[list[Raw], Meta(max_length=Limit.EVENTS_PER_BATCH.maximum)]
