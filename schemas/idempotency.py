"""`Idempotency-Key`: under one key the same request is one change, however often it is sent, and another request is refused."""

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
    """A request's name, `KEY:REQUEST` as two digests: of the key within `scope`, and of what is asked. Empty without a key.

    What remembers the names of its requests tells by them a repeat from a key that is used a second time.
    """
    if not key:
        return ""
    # Bytes of a header that are no UTF-8 arrive as surrogates.
    named = _digest((key.encode("utf-8", "surrogatepass"), scope))
    return f"{named}{_SEPARATOR}{_digest(request)}"


def uses_known_key(request: str, known: Iterable[str]) -> bool:
    """Whether the request, or another one under its key, is among the known ones. Names of another form have no key."""
    key, separator, _ = request.partition(_SEPARATOR)
    return any(one == request or bool(separator and one.startswith(key + separator)) for one in known)


def is_repeat(request: str, known: Iterable[str]) -> bool:
    """Whether the request is among the known ones. Raises KeyReused where another one is under its key."""
    names = list(known)
    if request not in names and uses_known_key(request, names):
        raise KeyReused("the Idempotency-Key was used for another request")
    return request in names


def _digest(value: Any) -> str:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).hexdigest()
