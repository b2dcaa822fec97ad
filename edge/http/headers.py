"""The headers of section 5 of the protocol. Pure: a mapping in, what matters out, or every fault of them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from edge.http.errors import RequestError
from schemas.errors import Detail, WireError

LONGEST_SDK: Final = 200
_LONGEST_TYPE: Final = 200
"""A longer `Content-Type` is read anew each time: what is kept must not grow with what strangers send."""
_SDK: Final = re.compile(r"[!-~]+/[!-.0-~]+").fullmatch


class RequestHeaders(Struct, frozen=True):
    """What the headers say: who sends, and whether the body is gzip."""

    sdk: str
    gzip: bool


def read_headers(headers: Mapping[str, str]) -> RequestHeaders:
    """Check the headers. Raises Fault with the name of each faulty one as its field (contract, section 2, point 4)."""
    content_type = headers.get("Content-Type")
    read = _read if content_type is None or len(content_type) <= _LONGEST_TYPE else _read.__wrapped__
    return read(headers.get("Svc-Sdk"), content_type, headers.get("Content-Encoding"))


def named_sdk(headers: Mapping[str, str]) -> str:
    """What a request that may be refused calls its SDK, as text that can be counted and sent on; "" where it doesn't.

    Header bytes that aren't UTF-8 reach us as lone surrogates, which neither JSON nor Prometheus' text can carry.
    """
    return headers.get("Svc-Sdk", "")[:LONGEST_SDK].encode("utf-8", "replace").decode()


# A fleet sends few combinations, and reading one costs as much as finding its route. Faults are raised, so never kept.
@lru_cache(maxsize=1000)
def _read(sdk: str | None, content_type: str | None, encoding: str | None) -> RequestHeaders:
    details = []
    if sdk is None:
        details.append(Detail("Svc-Sdk", "required"))
    elif len(sdk) > LONGEST_SDK or not _SDK(sdk):
        details.append(
            Detail("Svc-Sdk", f"expected <sdk-name>/<sdk-version> of at most {LONGEST_SDK} characters")
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
