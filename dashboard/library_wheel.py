"""The reporting library's wheel, made from the package that is installed here; `pip install URL` takes it."""

import base64
import csv
import hashlib
import io
import zipfile
from functools import cache
from importlib import resources
from importlib.metadata import distribution
from typing import Final

from aiohttp import web
from msgspec import Struct

from dashboard.http.paths import LIBRARIES

_YEAR_SECONDS: Final = 31_536_000


class Wheel(Struct, frozen=True):
    """A built wheel. Its SHA-256 is the same in every replica: files have no times and aren't compressed."""

    path: str
    """The path of its URL."""
    content: bytes

    @property
    def sha256(self) -> str:
        """The hash that `pip hash` prints."""
        return hashlib.sha256(self.content).hexdigest()


@cache
def library_wheel() -> Wheel:
    """The wheel, in the format of https://packaging.python.org/specifications/binary-distribution-format/."""
    library = distribution("svc-reporting")
    stem = f"svc_reporting-{library.version}"
    sources = [
        file
        for file in resources.files("svc").iterdir()
        if file.name.endswith(".py") or file.name == "py.typed"
    ]
    files = {f"svc/{file.name}": file.read_bytes() for file in sorted(sources, key=lambda file: file.name)}
    for name in ("METADATA", "WHEEL"):
        files[f"{stem}.dist-info/{name}"] = (library.read_text(name) or "").encode()
    record = f"{stem}.dist-info/RECORD"
    files[record] = _record(files, record)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return Wheel(f"{LIBRARIES}{stem}-py3-none-any.whl", packed.getvalue())


def _record(files: dict[str, bytes], record: str) -> bytes:
    """Name, hash and size of each file."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(content)))
    rows.writerow((record, "", ""))
    return table.getvalue().encode()


def add_library(app: web.Application) -> None:
    """Serve the wheel without a sign-in, as static files are. A version's wheel never changes."""
    app.router.add_get(library_wheel().path, _serve)


async def _serve(_request: web.Request) -> web.Response:
    return web.Response(
        body=library_wheel().content,
        content_type="application/zip",
        headers={"Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable"},
    )
