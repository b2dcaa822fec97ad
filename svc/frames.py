"""Call sites as the frames of section 2.7: file, function, line, column, in-app flag, surrounding source."""

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
from svc.source_files import mask_secrets, source_lines

_VENDOR = ("site-packages", "dist-packages")
_MAX_FILES = 5_000
_MAX_FRAMES = 1_000


class FileFacts(NamedTuple):
    """The fields that all frames of a file share."""

    file: str
    absolute: str | None
    in_app: bool


class Framer:
    """Converts call sites to frames and caches the facts about each file.

    A frame is in-app unless it belongs to the standard library, an installed package (below `site-packages` or
    `dist-packages`), frozen or generated code, or this library. `include` and `exclude` take precedence: each entry is
    a module with its submodules (`shop.pay`) or, with a slash, a path prefix.
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
        self._files: dict[tuple[str, str | None], FileFacts] = {}
        self._frame_cache: dict[tuple[CallSite, str], dict[str, Any]] = {}
        self._roots: tuple[list[str], list[str]] = ([], [])
        self._own = _folder(str(Path(__file__).parent))
        self._home = _folder(os.path.expanduser("~"))  # noqa: PTH111  # Path.home raises where there is none
        self._library = _library_folders()

    def frames(self, sites: Sequence[CallSite]) -> list[dict[str, Any]]:
        """Frames in the order of the call sites. Repeated call sites return the cached object."""
        return [self._cached_frame(site) for site in sites]

    def _cached_frame(self, site: CallSite) -> dict[str, Any]:
        """The frame. An unreadable (hand-made) code object must not cost the event."""
        try:
            key = (site, site.code.co_filename)  # code objects of different files can be equal
            if (frame := self._frame_cache.get(key)) is None:
                if len(self._frame_cache) >= _MAX_FRAMES:
                    self._frame_cache.clear()
                frame = self._frame_cache[key] = self._frame(site)
        except Exception:
            return {"function": "<unreadable>", "file": "<unreadable>", "line": site.line, "inApp": False}
        return frame

    def _frame(self, site: CallSite) -> dict[str, Any]:
        code = site.code
        facts = self.file_facts(code.co_filename, site.module)
        frame: dict[str, Any] = {
            "function": clip(code.co_qualname.replace("<locals>.", ""), 300),
            "file": facts.file,
            "line": site.line,
            "inApp": facts.in_app,
        }
        if facts.absolute is not None:
            frame["absolutePath"] = facts.absolute
        lines = source_lines(code.co_filename)
        if (column := _column(site, lines)) is not None:
            frame["column"] = column
        if self._source and lines:
            at = site.line - 1
            frame["preContext"] = [mask_secrets(line) for line in lines[max(0, at - CONTEXT_LINES) : at]]
            if 0 <= at < len(lines):
                frame["contextLine"] = mask_secrets(lines[at])
            frame["postContext"] = [mask_secrets(line) for line in lines[at + 1 : at + 1 + CONTEXT_LINES]]
        return frame

    def file_facts(self, filename: str, module: str | None) -> FileFacts:
        """The facts, of a file as its code names it and the module that it is in."""
        key = (filename, module)
        facts = self._files.get(key)
        if facts is None:
            if len(self._files) >= _MAX_FILES:
                self._files.clear()
            facts = self._files[key] = self._locate(filename, module)
        return facts

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
        """The path relative to the project or the nearest entry of `sys.path`, else the bare file name."""
        vendor = any(f"/{folder}/" in path for folder in _VENDOR)
        if self._root and path.startswith(self._root) and not vendor:
            return path.removeprefix(self._root)
        for root in self._current_roots():
            if path.startswith(root):
                return path.removeprefix(root)
        return path.rpartition("/")[2]

    def _current_roots(self) -> list[str]:
        """Folders of `sys.path`, longest first. Both lists are replaced together, for concurrent threads."""
        seen, roots = self._roots
        if seen != sys.path:
            seen = list(sys.path)
            entries = {_folder(entry or ".") for entry in seen if isinstance(entry, str)} | {_folder(".")}
            roots = sorted((entry for entry in entries if entry != "/"), key=len, reverse=True)
            self._roots = (seen, roots)
        return roots

    def _ruled(self, module: str | None, *paths: str) -> bool | None:
        """Whether the application's rules include (True) or exclude (False) the file; None if none applies."""
        for rules, in_app in ((self._include, True), (self._exclude, False)):
            for rule in rules:
                if "/" in rule:
                    if any(path.startswith(rule) for path in paths):
                        return in_app
                elif module is not None and (module == rule or module.startswith(rule + ".")):
                    return in_app
        return None

    def _in_app(self, module: str | None, file: str, path: str) -> bool:
        ruled = self._ruled(module, file, path)
        if ruled is not None:
            return ruled
        if any(f"/{folder}/" in path for folder in _VENDOR):
            return False
        return not path.startswith((self._own, *self._library))


def _folder(path: str) -> str:
    with contextlib.suppress(OSError):  # the working directory may have been deleted
        path = os.path.abspath(path)  # noqa: PTH100  # no Path: links must not be resolved
    return path.replace("\\", "/").rstrip("/") + "/"


def _library_folders() -> tuple[str, ...]:
    """The standard library's folders, as named in its code objects."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} | {str(Path(os.__file__).parent)}
    return tuple({_folder(path) for path in paths if path})


def _column(site: CallSite, lines: Sequence[str]) -> int | None:
    """The 1-based column of the failing expression; code objects count bytes, frames characters."""
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
