"""Reading what a request brings: path, query string and body, each with a clear refusal."""

import uuid
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from dashboard.http.errors import HttpError, invalid, not_found
from dashboard.http.violations import detail_of
from schemas.errors import WireError
from schemas.ids import parse_hex64
from schemas.limits import Limit
from schemas.nesting import is_deep
from schemas.times import parse_iso

MAX_QUERY: Final = 4_000
_LAST_MS: Final = 4_102_444_800_000
S = TypeVar("S", bound=Struct)

Query = Annotated[str, Meta(max_length=MAX_QUERY, description="query language; empty: everything")]
PageSize = Annotated[int, Meta(ge=1, le=500, description="most entries of a page")]
Cursor = Annotated[str, Meta(max_length=10_000, description="`nextCursor` of the page before")]
Time = Annotated[
    str, Meta(max_length=40, description="ISO 8601 with an offset", extra_json_schema={"format": "date-time"})
]


class PageQuery(Struct, frozen=True):
    """A page of a list."""

    limit: PageSize = 50
    cursor: Cursor | None = None


class RangeInput(NamedTuple):
    """A time range: `start`, inclusive, to `end`, exclusive; Unix milliseconds; None where not asked for."""

    start: int | None
    end: int | None


def read_range(start: str | None, end: str | None) -> RangeInput:
    """The asked range; what is left out is the reader's to choose (the last 14 days). Raises HttpError."""
    asked = RangeInput(
        None if start is None else read_time("start", start), None if end is None else read_time("end", end)
    )
    if asked.start is not None and asked.end is not None and asked.start >= asked.end:
        raise invalid("start", "must be before end")
    return asked


def read_time(field: str, text: str) -> int:
    """Unix milliseconds of an ISO 8601 time. Raises HttpError."""
    try:
        # A plus sign that wasn't escaped arrives as a space.
        found = parse_iso(text.replace(" ", "+"))
    except ValueError:
        raise invalid(
            field, "must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00Z"
        ) from None
    if not 0 <= found < _LAST_MS:
        raise invalid(field, "must lie between the years 1970 and 2099")
    return found


def decode_query(request: web.Request, kind: type[S]) -> S:
    """The query string as a struct; the last of a repeated name counts, names that it doesn't know are passed over."""
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    given = {name: value for name, value in request.query.items() if name in names}
    if bad := [name for name, value in given.items() if not is_text(value)]:
        raise invalid(bad[0], "must be valid UTF-8 without null characters")
    return _convert(given, kind)


def _convert(given: Any, kind: type[S]) -> S:
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise HttpError(WireError.VALIDATION_FAILED, [detail_of(error, kind)]) from None


async def decode_body(request: web.Request, kind: type[S]) -> S:
    """The JSON body as a struct. Raises HttpError."""
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
    """Whether the text can be stored and shown: no surrogates (bytes that were no UTF-8), no null character."""
    return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)


def read_project(text: str) -> int:
    """A project's id: decimal digits of 32 bits. Raises HttpError."""
    if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < 1 << 32:
        return int(text)
    raise not_found("there is no such project")


def read_issue(text: str) -> str:
    """An issue's id: sixteen hexadecimal digits. Raises HttpError."""
    if parse_hex64(text) is None:
        raise not_found("there is no such issue")
    return text


def read_view(text: str) -> str:
    """A saved view's id: sixteen hexadecimal digits. Raises HttpError."""
    if parse_hex64(text) is None:
        raise not_found("there is no such view")
    return text


def read_event(text: str) -> str:
    """An event's id in lower case, or `latest` or `oldest`. Raises HttpError."""
    if text in {"latest", "oldest"}:
        return text
    try:
        if len(text) == 36:
            return str(uuid.UUID(text))
    except ValueError:
        pass
    raise not_found("there is no such event")


def read_key(text: str) -> str:
    """A tag's key. Raises HttpError."""
    if not is_text(text) or not 1 <= len(text) <= Limit.TAG_KEY_LENGTH.maximum:
        raise not_found("there is no such tag")
    return text
