"""The files of a `multipart/form-data` body, which may be larger than any JSON."""

import asyncio
from collections.abc import Collection
from typing import Final

from aiohttp import BodyPartReader, web
from msgspec import Struct

from dashboard.http.http_errors import HttpError, invalid
from schemas.errors import Detail, WireError

_CHUNK: Final = 1 << 18
_SECONDS: Final = 120.0
"""For a whole body."""


class UploadedFile(Struct, frozen=True):
    """A file and its name, which may be empty."""

    name: str = ""
    content: bytes = b""


async def read_files(
    request: web.Request, names: Collection[str], most_bytes: int, seconds: float = _SECONDS
) -> dict[str, UploadedFile]:
    """The parts with these names, each of at most so many bytes. Raises HttpError."""
    if request.content_type != "multipart/form-data":
        raise invalid("Content-Type", "must be multipart/form-data")
    files: dict[str, UploadedFile] = {}
    try:
        async with asyncio.timeout(seconds):
            async for part in await request.multipart():
                if (
                    not isinstance(part, BodyPartReader)
                    or (name := part.name or "") not in names
                    or name in files
                ):
                    raise invalid("body", f"may have only the parts {' and '.join(names)}, each once")
                files[name] = UploadedFile(part.filename or "", await _content(part, most_bytes))
    except (TimeoutError, ConnectionError):
        raise invalid("body", f"didn't arrive within {seconds:.0f} s") from None
    except (ValueError, AssertionError, RuntimeError) as error:
        raise invalid("body", f"can't be parsed: {error}") from None
    return files


async def _content(part: BodyPartReader, most_bytes: int) -> bytes:
    content = bytearray()
    while chunk := await part.read_chunk(_CHUNK):
        content += chunk
        if len(content) > most_bytes:
            detail = Detail(part.name or "", f"at most {most_bytes >> 20} MB")
            raise HttpError(WireError.PAYLOAD_TOO_LARGE, [detail])
    return bytes(content)
