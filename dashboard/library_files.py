"""The reporting libraries under `/libraries/`, for installers and for pages of other origins."""

import base64
import hashlib
from collections.abc import Iterable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from dashboard.http.paths import LIBRARIES

_YEAR_SECONDS: Final = 31_536_000
_HEADERS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable",
    "Vary": "Accept-Encoding",
}


class LibraryFile(Struct, frozen=True):
    """A file whose path names its version: its content never changes, and is the same in every replica."""

    name: str
    content: bytes
    content_type: str

    @property
    def path(self) -> str:
        """The path of its URL."""
        return LIBRARIES + self.name

    @property
    def sha256(self) -> str:
        """The hash that `pip hash` prints."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def integrity(self) -> str:
        """The hash that a browser checks."""
        return f"sha384-{base64.b64encode(hashlib.sha384(self.content).digest()).decode()}"


def add_library_files(app: web.Application, files: Iterable[LibraryFile]) -> None:
    """Serve the files without a sign-in, as static files are."""
    for file in files:
        app.router.add_get(file.path, _serve(file))


def _serve(file: LibraryFile) -> Handler:
    async def serve(_request: web.Request) -> web.Response:
        response = web.Response(body=file.content, content_type=file.content_type, headers=_HEADERS)
        if file.content_type.startswith("text/"):
            response.charset = "utf-8"
            response.enable_compression()
        return response

    return serve
