"""The JavaScript library: modules that pages load, and the package that `npm install URL` takes."""

import gzip
import io
import json
import tarfile
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Final

from dashboard.library_files import LibraryFile

_SOURCES: Final = Path(__file__).parents[1] / "svc-js"
"""In a checkout and where the service is installed."""
_NOT_IN_PAGES: Final = {"node.js", "react-native.js", "sentry-node.js", "sentry-react-native.js"}


@cache
def _manifest() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_SOURCES / "package.json").read_bytes())
    return content


@cache
def javascript_modules() -> tuple[LibraryFile, ...]:
    """The modules, which import each other by relative paths."""
    return tuple(
        LibraryFile(f"svc-js/{_manifest()['version']}/{path.name}", path.read_bytes(), "text/javascript")
        for path in sorted(_SOURCES.glob("*.js"))
        if path.name not in _NOT_IN_PAGES
    )


def import_map(origin: str) -> str:
    """The import map by which a browser checks the modules."""
    hashes = {origin + module.path: module.integrity for module in javascript_modules()}
    return f'<script type="importmap">\n{json.dumps({"integrity": hashes}, indent=2)}\n</script>'


@cache
def javascript_package() -> LibraryFile:
    """The files that `npm pack` takes. Lock files keep its hash, so it has no times and isn't compressed."""
    patterns = ("package.json", *_manifest()["files"])
    paths = sorted(path for path in _SOURCES.iterdir() if any(fnmatch(path.name, each) for each in patterns))
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", 0, packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path in paths:
            content = path.read_bytes()
            member = tarfile.TarInfo(f"package/{path.name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return LibraryFile(f"svc-js-{_manifest()['version']}.tgz", packed.getvalue(), "application/gzip")
