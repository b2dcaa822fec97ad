"""The wire format of events (protocol, section 2), in the strict form that the fast path decodes.

Fields are spelled as on the wire. `None` means null or absent, which the protocol treats the same for every
optional field. Unknown fields are ignored here and preserved by forwarding the raw bytes. Free-form values
stay `Raw`, since they may contain arbitrarily large numbers. Every event that the edge forwards decodes as
`Event`, or as `LenientEvent` if the project is lenient to the SDK. `gc=False`: a decoded tree has no cycles.

**Who adds a field** adds it here, and to those of the following shapes that are to read it. Behind the edge an event is
decoded in parts, each with the fields that one purpose needs: the whole costs three to four times as much.
`tests/test_event_shapes.py` keeps this list complete.

    edge.refusals: an example of a refused event, of which nothing else is known to be right
        _Origin          id release
    processors.grouper.event_outline: the grouper, for every event. Stacks stay bytes, by which it knows their locations
        EventOutline     timestamp platform release environment user fingerprint error
        UserOutline      id
        ErrorOutline     type message stack cause
    grouping.fingerprint.event_view: the fields that decide a group, for uncached stacks and in trials of rules.
      Lenient: people try events that no edge has checked
        _Identified      error platform fingerprint id
        GroupingError    type message stack cause
        GroupingFrame    function file line column inApp
    sourcemaps.event_frames: the frames that source maps resolve, when an event is read
        SentEvent        error platform release
    query.event_fields: the writer and the rules, which agree on the columns. Stacks and devices stay bytes,
      the keys of caches
        EventFields      timestamp kind platform release environment device error user tags
        DeviceFields     os osVersion model locale
        _ErrorFields     type message stack cause
        _UserFields      id
        _FrameFields     file function

The edge derives its shapes from the structs below, in `edge.validation`.
Three lists of names don't: `INTEGER_FIELDS` in `edge.validation.repair`, and the fields that
`dashboard.view.event_sections` and `dashboard.view.stack_view` show of an event's JSON. The reporting library, `svc`,
writes events and reads none.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Raw, Struct

from schemas.limits import MAX_LENIENT_RELEASE, Limit

_HEX: Final = "[0-9a-fA-F]"
UUID7_PATTERN: Final = f"^{_HEX}{{8}}-{_HEX}{{4}}-7{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}$"
UUID_PATTERN: Final = f"^{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}$"
RELEASE_PATTERN: Final = r"^[^+]+@[^@+]+\+[\s\S]+$"
"""`schemas.releases` splits it into an application's name, a version and a build."""
TIME_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,100})?(Z|\+00:00)$"
MAX_INTEGER: Final = 2**63 - 1
"""Integers have 64 bits, so that all later stages can decode accepted events."""


def _at_most(limit: Limit) -> Meta:
    return Meta(max_length=limit.maximum, extra={"limit": limit})


UtcTime = Annotated[str, Meta(extra_json_schema={"format": "date-time", "pattern": TIME_PATTERN})]
"""ISO 8601 in UTC, with `T`, seconds, and `Z` or `+00:00`. The pattern is checked after decoding, for many
times together."""
ContextLines = Annotated[list[str], _at_most(Limit.CONTEXT_LINES)]
OneIndexed = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
ZeroIndexed = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
WholeNumber = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Uuid7 = Annotated[str, Meta(pattern=UUID7_PATTERN, max_length=36)]
AnyUuid = Annotated[str, Meta(pattern=UUID_PATTERN, max_length=36)]
Release = Annotated[str, Meta(extra_json_schema={"pattern": RELEASE_PATTERN})]
"""The pattern is checked after decoding, because it can be slow on a long text."""
LenientRelease = Annotated[str, Meta(min_length=1, max_length=MAX_LENIENT_RELEASE)]
TagKey = Annotated[str, _at_most(Limit.TAG_KEY_LENGTH)]
TagValue = Annotated[str, _at_most(Limit.TAG_VALUE_LENGTH)]

Kind = Literal["error"]
LenientKind = Literal["error", "anr", "nearCrash"]
Platform = Literal["javascript", "ios", "android", "python"]
"""`python` is added by this server (contract, section 2, point 7)."""
DeviceOs = Literal["ios", "android", "web", "other"]


class Framework(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.4."""

    name: str
    version: str


class App(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.3."""

    version: str
    build: str | None = None
    framework: Framework | None = None


class Device(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.2."""

    os: DeviceOs
    osVersion: str
    model: str | None = None
    locale: str | None = None


class User(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.5, with `name` and `linkHashes` as the reporting library sends them (contract, section 5)."""

    id: str | None = None
    anonymous: bool | None = None
    name: str | None = None
    linkHashes: dict[str, str] | None = None


class Frame(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.7. Lines and columns are 1-indexed.

    `contextLine` is the source line itself (contract, section 2, point 7).
    """

    file: str
    line: OneIndexed
    inApp: bool
    function: str | None = None
    column: OneIndexed | None = None
    absolutePath: str | None = None
    preContext: ContextLines | None = None
    contextLine: str | None = None
    postContext: ContextLines | None = None


class Error(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.6. `stack` has its top first; the depth of `cause` is checked after decoding."""

    type: str
    message: str
    stack: Annotated[list[Frame], _at_most(Limit.FRAMES)]
    cause: "Error | None" = None


class NavData(Struct, frozen=True, rename={"from_": "from"}, gc=False):
    """Data of a `nav` breadcrumb (section 2.8); keys may be missing (contract, section 2, point 6)."""

    from_: str | None = None
    to: str | None = None


class NetData(Struct, frozen=True, gc=False):
    """Data of a `net` breadcrumb."""

    method: str | None = None
    url: str | None = None
    status: WholeNumber | None = None
    durationMs: WholeNumber | None = None


class LogData(Struct, frozen=True, gc=False):
    """Data of a `log` breadcrumb."""

    level: str | None = None
    message: str | None = None


class UserData(Struct, frozen=True, gc=False):
    """Data of a `user` breadcrumb."""

    action: str | None = None
    target: str | None = None


class NavBreadcrumb(Struct, frozen=True, tag_field="type", tag="nav", gc=False):
    """A route change."""

    timestamp: UtcTime
    data: NavData


class NetBreadcrumb(Struct, frozen=True, tag_field="type", tag="net", gc=False):
    """A network round-trip."""

    timestamp: UtcTime
    data: NetData


class LogBreadcrumb(Struct, frozen=True, tag_field="type", tag="log", gc=False):
    """A line of a log."""

    timestamp: UtcTime
    data: LogData


class UserBreadcrumb(Struct, frozen=True, tag_field="type", tag="user", gc=False):
    """An action of the user."""

    timestamp: UtcTime
    data: UserData


class CustomBreadcrumb(Struct, frozen=True, tag_field="type", tag="custom", gc=False):
    """Free-form data of the application."""

    timestamp: UtcTime
    data: dict[str, Raw]


class TrackBreadcrumb(Struct, frozen=True, tag_field="type", tag="track", gc=False):
    """A call of `track()`; a wire type added by this server (contract, section 2, point 7)."""

    timestamp: UtcTime
    data: dict[str, Raw]


Breadcrumb = (
    NavBreadcrumb | NetBreadcrumb | LogBreadcrumb | UserBreadcrumb | CustomBreadcrumb | TrackBreadcrumb
)


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.1. The forms of `release` and of times are checked after decoding."""

    id: Uuid7
    timestamp: UtcTime
    kind: Kind
    platform: Platform
    release: Release
    environment: str
    device: Device
    app: App
    error: Error
    user: User | None = None
    tags: Annotated[dict[TagKey, TagValue], _at_most(Limit.TAG_KEYS)] | None = None
    breadcrumbs: Annotated[list[Breadcrumb], _at_most(Limit.BREADCRUMBS)] | None = None
    fingerprint: list[Raw] | None = None
    traceId: str | None = None
    spanId: str | None = None


class LenientFrame(Frame, frozen=True, kw_only=True, gc=False):
    """A frame whose place may be unknown: 0 (contract, section 2, point 7)."""

    line: ZeroIndexed
    column: ZeroIndexed | None = None


class LenientError(Struct, frozen=True, kw_only=True, gc=False):
    """Section 2.6 with lenient frames."""

    type: str
    message: str
    stack: Annotated[list[LenientFrame], _at_most(Limit.FRAMES)]
    cause: "LenientError | None" = None


class LenientEvent(Event, frozen=True, kw_only=True, gc=False):
    """An event that a lenient project accepts from its named SDKs (contract, section 2, point 7)."""

    id: AnyUuid
    kind: LenientKind  # type: ignore[assignment]
    release: LenientRelease
    error: LenientError  # type: ignore[assignment]
