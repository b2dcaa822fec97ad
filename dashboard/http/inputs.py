"""Decoding of a request's path, query string and body. All functions raise HttpError for invalid input."""

import uuid
from collections.abc import Mapping
from typing import Annotated, Final, TypedDict, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from dashboard.http.http_errors import HttpError, invalid, not_found
from dashboard.http.violations import detail_of
from schemas.errors import WireError
from schemas.ids import parse_hex64
from schemas.limits import Limit
from schemas.nesting import is_deep
from schemas.times import parse_iso

MAX_QUERY: Final = 4_000
_YEAR_2100_MS: Final = 4_102_444_800_000
S = TypeVar("S", bound=Struct)

Query = Annotated[str, Meta(max_length=MAX_QUERY, description="query language; empty: everything")]
PageSize = Annotated[int, Meta(ge=1, le=500, description="maximum number of entries")]
Cursor = Annotated[str, Meta(max_length=10_000, description="`nextCursor` of the previous page")]
Time = Annotated[
    str, Meta(max_length=40, description="ISO 8601 with an offset", extra_json_schema={"format": "date-time"})
]


class PageQuery(Struct, frozen=True):
    """A page of a list."""

    limit: PageSize = 50
    cursor: Cursor | None = None


class Bounds(TypedDict):
    """A time range in Unix milliseconds: `start` inclusive, `end` exclusive, None if open."""

    start: int | None
    end: int | None


class TimeQuery(Struct, frozen=True):
    """A time range; the reader fills in missing ends (the last 14 days)."""

    start: Time | None = None
    end: Time | None = None

    def bounds(self) -> Bounds:
        """The range as arguments of a read call."""
        start = None if self.start is None else read_time("start", self.start)
        end = None if self.end is None else read_time("end", self.end)
        if start is not None and end is not None and start >= end:
            raise invalid("start", "must be before end")
        return {"start": start, "end": end}


class RangeQuery(TimeQuery, frozen=True):
    """The events of a range that match a query."""

    query: Query = ""


def read_time(field: str, text: str) -> int:
    """Unix milliseconds of an ISO 8601 time."""
    try:
        # An unescaped plus sign arrives as a space.
        ms = parse_iso(text.replace(" ", "+"))
    except ValueError:
        raise invalid(
            field, "must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00Z"
        ) from None
    return check_year(field, ms)


def check_year(field: str, ms: int) -> int:
    """The time, if it is within the years that events are stored for."""
    if not 0 <= ms < _YEAR_2100_MS:
        raise invalid(field, "must be between the years 1970 and 2099")
    return ms


def decode_query(request: web.Request, kind: type[S]) -> S:
    """The query string as a struct. The last value of a repeated name counts; unknown names are ignored."""
    return decode_fields(request.query, kind)


def decode_fields(given: Mapping[str, str], kind: type[S]) -> S:
    """The fields of a query string or a form as a struct; unknown names are ignored."""
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    fields = {name: value for name, value in given.items() if name in names}
    if bad := [name for name, value in fields.items() if not is_text(value)]:
        raise invalid(bad[0], "must be valid UTF-8")
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise HttpError(WireError.VALIDATION_FAILED, [detail_of(error, kind)]) from None


async def decode_body(request: web.Request, kind: type[S]) -> S:
    """The JSON body as a struct."""
    if request.content_type != "application/json":
        raise invalid("Content-Type", "must be application/json")
    try:
        body = await request.read()
        if is_deep(body):
            raise invalid("body", "JSON is nested too deeply")
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise HttpError(WireError.VALIDATION_FAILED, [detail_of(error, kind)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid("body", f"the body is not JSON: {error}") from None


def is_text(value: str) -> bool:
    """Whether the text can be stored and shown: it has no surrogates (from invalid UTF-8)."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def read_project(text: str) -> int:
    """A project's id: a 32-bit decimal number."""
    if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < 1 << 32:
        return int(text)
    raise not_found("this project doesn't exist")


def read_issue(text: str) -> str:
    """An issue's id: sixteen hexadecimal digits."""
    return _read_hex(text, "issue")


def read_view(text: str) -> str:
    """A saved view's id: sixteen hexadecimal digits."""
    return _read_hex(text, "view")


def _read_hex(text: str, kind: str) -> str:
    if parse_hex64(text) is None:
        raise not_found(f"this {kind} doesn't exist")
    return text


def read_event(text: str) -> str:
    """An event's id in lower case, or `latest` or `oldest`."""
    if text in {"latest", "oldest"}:
        return text
    try:
        if len(text) == 36:
            return str(uuid.UUID(text))
    except ValueError:
        pass
    raise not_found("this event doesn't exist")


def read_key(text: str) -> str:
    """A tag's key."""
    if not is_text(text) or not 1 <= len(text) <= Limit.TAG_KEY_LENGTH.maximum:
        raise not_found("this tag doesn't exist")
    return text
