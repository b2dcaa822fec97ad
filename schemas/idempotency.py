"""`Idempotency-Key`: repeats of a request under a key change nothing, and another request under it is refused."""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from schemas.errors import KeyReused

KEPT: Final = 64
"""Requests that a project remembers."""
_SEPARATOR: Final = ":"
_DIGEST_BYTES: Final = 12


def request_id(key: str, scope: str, *request: Any) -> str:
    """The id of a request, `KEY:REQUEST`; empty without a key.

    It joins the digests of the key within `scope` and of the request. Stored ids distinguish a repeated
    request from a reused key.
    """
    if not key:
        return ""
    # Header bytes that are not UTF-8 arrive as surrogates.
    named = _digest((key.encode("utf-8", "surrogatepass"), scope))
    return f"{named}{_SEPARATOR}{_digest(request)}"


def uses_known_key(request: str, known: Iterable[str]) -> bool:
    """Whether the request, or another under its key, is known. Ids without a separator have no key."""
    key, separator, _ = request.partition(_SEPARATOR)
    return any(name == request or bool(separator and name.startswith(key + separator)) for name in known)


def is_repeat(request: str, known: Iterable[str]) -> bool:
    """Whether the request is known. Raises KeyReused if another request used its key."""
    names = list(known)
    if request not in names and uses_known_key(request, names):
        raise KeyReused("the Idempotency-Key was used for another request")
    return request in names


def _digest(value: Any) -> str:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).hexdigest()
