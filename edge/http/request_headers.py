"""The headers of a request that are checked (contract, section 2, point 4)."""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct
from multidict import MultiMapping

from edge.request_errors import RequestError
from schemas.errors import Detail, WireError

MAX_SDK_LENGTH: Final = 200


_MAX_CACHED_TYPE_LENGTH: Final = 200
"""Longer `Content-Type` values are not cached: clients must not be able to grow the cache."""


_SDK: Final = re.compile(r"[!-~]+/[!-.0-~]+").fullmatch


class RequestHeaders(Struct, frozen=True):
    """The sending SDK, and whether the body is gzip."""

    sdk: str
    gzip: bool


def header_of(headers: MultiMapping[str], name: str) -> str | None:
    """A header's value, or None.

    Several lines are one list (RFC 9110, section 5.3), which is valid for none of the headers that are checked: what
    stands in front of the edge may have read another line than the first.
    """
    values = headers.getall(name, ())
    return values[0] if len(values) == 1 else ", ".join(values) or None


def read_headers(headers: MultiMapping[str]) -> RequestHeaders:
    """Check the headers. Raises RequestError; its details name each invalid header as the field."""
    if headers.get("Transfer-Encoding", "chunked").strip().lower() != "chunked":
        # aiohttp only undoes `chunked`, and would take the still encoded rest for the body.
        details = [Detail("Transfer-Encoding", "expected chunked")]
        raise RequestError(WireError.VALIDATION_FAILED, "headers", details)
    content_type = header_of(headers, "Content-Type")
    cacheable = content_type is None or len(content_type) <= _MAX_CACHED_TYPE_LENGTH
    parse = _parse_headers if cacheable else _parse_headers.__wrapped__
    return parse(header_of(headers, "Svc-Sdk"), content_type, header_of(headers, "Content-Encoding"))


def named_sdk(headers: MultiMapping[str]) -> str:
    """The unchecked SDK name of a request that may be refused, safe to count and forward; "" without one.

    aiohttp decodes bytes that aren't UTF-8 to lone surrogates, which neither JSON nor Prometheus' text can encode.
    """
    return headers.get("Svc-Sdk", "")[:MAX_SDK_LENGTH].encode("utf-8", "replace").decode()


# A fleet sends few combinations, and parsing one costs as much as routing. Errors are raised, so they aren't cached.
@lru_cache(maxsize=1000)
def _parse_headers(sdk: str | None, content_type: str | None, encoding: str | None) -> RequestHeaders:
    details = []
    if sdk is None:
        details.append(Detail("Svc-Sdk", "required"))
    elif len(sdk) > MAX_SDK_LENGTH or not _SDK(sdk):
        details.append(
            Detail("Svc-Sdk", f"expected <sdk-name>/<sdk-version> of at most {MAX_SDK_LENGTH} characters")
        )
    if content_type is None:
        details.append(Detail("Content-Type", "required"))
    elif content_type.split(";")[0].strip().lower() != "application/json":
        details.append(Detail("Content-Type", "expected application/json"))
    coding = (encoding or "identity").strip().lower()
    if coding not in {"gzip", "identity"}:
        details.append(Detail("Content-Encoding", "expected gzip or identity"))
    if details:
        raise RequestError(WireError.VALIDATION_FAILED, "headers", details)
    return RequestHeaders(sdk or "", coding == "gzip")
