"""Conditional requests (RFC 9110, section 13): what hasn't changed is not sent again."""

import hashlib
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

HEADERS: Final = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
"""Kept by the asker alone, and asked about before each use: a change shows at once."""
_DIGEST_BYTES: Final = 16
_encode: Final = msgspec.json.Encoder().encode


class Tagged(Struct, frozen=True):
    """An answer's JSON and the tag of what it says."""

    body: bytes
    etag: str


def tagged(answer: Struct) -> Tagged:
    """The answer with its tag. The tag is weak: a cursor, which differs with each call for the same page, is no part of it."""
    body = _encode(answer)
    said = body
    if getattr(answer, "next_cursor", None) is not None:
        said = _encode(msgspec.structs.replace(answer, next_cursor=""))
    digest = hashlib.blake2b(said, digest_size=_DIGEST_BYTES).hexdigest()
    return Tagged(body, f'W/"{digest}"')


def conditional_answer(request: web.Request, answer: Tagged) -> web.Response:
    """The answer, or 304 without a body where the asker has it already."""
    headers: dict[str, Any] = HEADERS | {"ETag": answer.etag}
    if is_known(request.headers.getall("If-None-Match", []), answer.etag):
        return web.Response(status=304, headers=headers)
    return web.Response(body=answer.body, headers=headers, content_type="application/json")


def is_known(given: list[str], etag: str) -> bool:
    """Whether `If-None-Match` names the tag, or anything; a weak and a strong tag of the same name are the same here."""
    names = {name.strip().removeprefix("W/") for line in given for name in line.split(",")}
    return "*" in names or etag.removeprefix("W/") in names
