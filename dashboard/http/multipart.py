"""The files of a `multipart/form-data` body, which may be larger than any JSON."""

from typing import Final

from aiohttp import BodyPartReader, web
from msgspec import Struct

from dashboard.http.http_errors import HttpError, invalid
from schemas.errors import Detail, WireError

_CHUNK: Final = 1 << 18


class UploadedFile(Struct, frozen=True):
    """A file and its name, which may be empty."""

    name: str = ""
    content: bytes = b""


async def read_files(request: web.Request, most_bytes: int) -> dict[str, UploadedFile]:
    """The parts by their names, each of at most so many bytes. Raises HttpError."""
    if request.content_type != "multipart/form-data":
        raise invalid("Content-Type", "must be multipart/form-data")
    files: dict[str, UploadedFile] = {}
    try:
        async for part in await request.multipart():
            if isinstance(part, BodyPartReader) and part.name:
                files[part.name] = UploadedFile(part.filename or "", await _content(part, most_bytes))
    except (ValueError, AssertionError) as error:
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
