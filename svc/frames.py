"""Places in the code as the frames of section 2.7: file, function, line, column, in-app or not, source around it."""

import contextlib
import os
import sys
import sysconfig
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from svc.exception_chain import CallSite
from svc.limits import CONTEXT_LINES
from svc.plain import clip
from svc.source_files import shown, source_lines

_VENDOR = ("site-packages", "dist-packages")
_CACHE = 5_000
_MET = 1_000


class FileFacts(NamedTuple):
    """What is the same for all frames of a file."""

    file: str
    absolute: str | None
    in_app: bool


class Framer:
    """Turns places into frames, remembering what it found out about each file.

    A frame is the application's unless it is of the standard library, of an installed package (a folder named
    `site-packages` or `dist-packages`), frozen, generated or of this library. `include` and `exclude` come first: each
    entry is a module with all below it (`shop.pay`) or, with a slash in it, the beginning of a file's path.
    """

    def __init__(
        self,
        include: Sequence[str] | str = (),
        exclude: Sequence[str] | str = (),
        root: str | None = None,
        source: bool = True,
    ) -> None:
        self._include = (include,) if isinstance(include, str) else tuple(include)
        self._exclude = (exclude,) if isinstance(exclude, str) else tuple(exclude)
        self._root = None if root is None else _folder(root)
        self._source = source
        self._places: dict[tuple[str, str | None], FileFacts] = {}
        self._frame_cache: dict[tuple[CallSite, str], dict[str, Any]] = {}
        self._roots: tuple[list[str], list[str]] = ([], [])
        self._own = _folder(str(Path(__file__).parent))
        self._home = _folder(os.path.expanduser("~"))  # noqa: PTH111  # Path.home raises where there is none
        self._library = _library_folders()

    def frames(self, sites: Sequence[CallSite]) -> list[dict[str, Any]]:
        """Frames in the order of the places. A place that was met before gives the same object again."""
        return [self._shown(site) for site in sites]

    def _shown(self, site: CallSite) -> dict[str, Any]:
        """A code object may be made by hand, of anything: what can't be read costs a frame and not the event."""
        try:
            return self._frame_cache.get((site, site.code.co_filename)) or self._meet(site)
        except Exception:
            return {"function": "<unreadable>", "file": "<unreadable>", "line": site.line, "inApp": False}

    def _meet(self, site: CallSite) -> dict[str, Any]:
        """Remember the frame. Code objects of different files can be equal: the file is part of the key."""
        if len(self._frame_cache) >= _MET:
            self._frame_cache.clear()
        frame = self._frame_cache[site, site.code.co_filename] = self._frame(site)
        return frame

    def _frame(self, site: CallSite) -> dict[str, Any]:
        code = site.code
        place = self._place(code.co_filename, site.module)
        frame: dict[str, Any] = {
            "function": clip(code.co_qualname.replace("<locals>.", ""), 300),
            "file": place.file,
            "line": site.line,
            "inApp": place.in_app,
        }
        if place.absolute is not None:
            frame["absolutePath"] = place.absolute
        lines = source_lines(code.co_filename)
        if (column := _column(site, lines)) is not None:
            frame["column"] = column
        if self._source and lines:
            at = site.line - 1
            frame["preContext"] = [shown(line) for line in lines[max(0, at - CONTEXT_LINES) : at]]
            frame["postContext"] = [shown(line) for line in lines[at + 1 : at + 1 + CONTEXT_LINES]]
        return frame

    def _place(self, filename: str, module: str | None) -> FileFacts:
        key = (filename, module)
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= _CACHE:
                self._places.clear()
            place = self._places[key] = self._locate(filename, module)
        return place

    def _locate(self, filename: str, module: str | None) -> FileFacts:
        if filename.startswith("<"):
            return FileFacts(clip(filename), None, self._ruled(module, filename) or module == "__main__")
        path = filename.replace("\\", "/")
        if not Path(filename).is_absolute():
            return FileFacts(clip(path), None, self._in_app(module, path, path))
        file = self._relative(path)
        absolute = "~/" + path.removeprefix(self._home) if path.startswith(self._home) else path
        return FileFacts(clip(file), clip(absolute), self._in_app(module, file, path))

    def _relative(self, path: str) -> str:
        """The path below the project or below the nearest entry of `sys.path`, else the file's name alone."""
        vendor = any(f"/{folder}/" in path for folder in _VENDOR)
        if self._root and path.startswith(self._root) and not vendor:
            return path.removeprefix(self._root)
        for root in self._current_roots():
            if path.startswith(root):
                return path.removeprefix(root)
        return path.rpartition("/")[2]

    def _current_roots(self) -> list[str]:
        """Folders of `sys.path`, longest first. Both lists change at once: threads may be in here together."""
        seen, roots = self._roots
        if seen != sys.path:
            seen = list(sys.path)
            entries = {_folder(entry or ".") for entry in seen if isinstance(entry, str)} | {_folder(".")}
            roots = sorted((entry for entry in entries if entry != "/"), key=len, reverse=True)
            self._roots = (seen, roots)
        return roots

    def _ruled(self, module: str | None, *paths: str) -> bool | None:
        """What the application's own rules say: in, out, or nothing."""
        for rules, verdict in ((self._include, True), (self._exclude, False)):
            for rule in rules:
                if "/" in rule:
                    if any(path.startswith(rule) for path in paths):
                        return verdict
                elif module is not None and (module == rule or module.startswith(rule + ".")):
                    return verdict
        return None

    def _in_app(self, module: str | None, file: str, path: str) -> bool:
        ruled = self._ruled(module, file, path)
        if ruled is not None:
            return ruled
        if any(f"/{folder}/" in path for folder in _VENDOR):
            return False
        return not path.startswith((self._own, *self._library))


def _folder(path: str) -> str:
    with contextlib.suppress(OSError):  # where the working directory is gone
        path = os.path.abspath(path)  # noqa: PTH100  # no Path: this must not resolve links
    return path.replace("\\", "/").rstrip("/") + "/"


def _library_folders() -> tuple[str, ...]:
    """Where the standard library is, under the names that its code objects may carry."""
    found = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} | {str(Path(os.__file__).parent)}
    return tuple({_folder(path) for path in found if path})


def _column(site: CallSite, lines: Sequence[str]) -> int | None:
    """The 1-indexed column where the failing expression begins; code objects count bytes, frames characters."""
    if site.instruction < 0:
        return None
    for line, _, start, _ in islice(site.code.co_positions(), site.instruction // 2, None):
        if line != site.line or start is None:
            return None
        if 0 < site.line <= len(lines):
            before = lines[site.line - 1].encode("utf-8", "replace")[:start]
            return len(before.decode("utf-8", "replace")) + 1
        return start + 1
    return None
