"""Source lines for frames, with secrets masked. A code object may name any path; only regular files are read."""

import io
import linecache
import os
import re
import stat
import sys
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from svc.limits import SOURCE_LINE_CHARS
from svc.plain import clip

MAX_SOURCE_BYTES: Final = 4 * 1_048_576
_FILES: Final = 200
_READ_ONLY: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
MASK: Final = "***"
_TOKEN: Final = re.compile(r"\b[sp]k_[0-9A-Za-z_-]{8,}|\bsvc_[ps]k_\w+")
_MAIL: Final = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,})\b")
"""A domain ends in letters; a release such as `shop@2.1.0+77` is no address."""
_NAMED: Final = re.compile(
    r"(?i)((?:token|key|password|passwd|pwd|secret|email|phone|username|(?:google|apple|meta)_?sub)"
    r"[\"']?\]?\s*[:=]\s*[a-z]{0,2})"
    r"([\"'])(?:\\.|(?!\2).)+\2"
)
_LINKED: Final = re.compile(r"(?i)link_?by")
_VALUE: Final = re.compile(r"(:\s*[a-zA-Z]{0,2})([\"'])(?:\\.|(?!\2).)+\2")


def source_lines(filename: str) -> list[str]:
    """The file's lines; empty if it is missing, too large or not a regular file (a FIFO, a device).

    The program's `linecache` takes precedence: its lines are as old as the running code.
    """
    try:
        if filename.startswith("<"):
            return linecache.getlines(filename)
        return _cached(filename) or _on_disk(filename) or _from_loader(filename)
    except Exception:
        return []


def _cached(filename: str) -> list[str]:
    entry = linecache.cache.get(filename)
    return entry[2] if entry is not None and len(entry) == 4 else []


def _from_loader(filename: str) -> list[str]:
    """The source from the module's loader, such as a zip importer; see `linecache.lazycache`."""
    entry = linecache.cache.get(filename)
    text = entry[0]() if entry is not None and len(entry) == 1 else None
    return text.splitlines(keepends=True) if isinstance(text, str) else []


@lru_cache(maxsize=_FILES)
def _on_disk(filename: str) -> list[str]:
    for path in _paths(filename):
        content = _content(path)
        if content is not None:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            return io.TextIOWrapper(io.BytesIO(content), encoding, errors="replace").readlines()
    return []


def _paths(filename: str) -> Iterator[str]:
    """Candidate paths. Network paths are refused: opening one would contact a host that the code object names."""
    if filename.startswith(("//", "\\\\")):
        return
    yield filename
    if not os.path.isabs(filename):  # noqa: PTH117
        yield from (os.path.join(entry, filename) for entry in sys.path if isinstance(entry, str))  # noqa: PTH118


def _content(path: str) -> bytes | None:
    """The file's bytes. Its type is checked before it is opened: `open` may block or trigger a device."""
    try:
        if not _is_readable(os.stat(path)):  # noqa: PTH116
            return None
        with os.fdopen(os.open(path, _READ_ONLY), "rb") as file:
            opened = os.fstat(file.fileno())
            # Not until end of file: files below /proc report size 0 and may be endless.
            return file.read(opened.st_size) if _is_readable(opened) else None
    except (OSError, ValueError):
        return None


def _is_readable(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES


def mask_secrets(line: str) -> str:
    """Cut the line and replace secrets: values named like a secret, mail addresses and tokens become `***`.

    In a line with `linkBy` all values are masked: `set_user` hashes them, so the source must not reveal them.
    """
    line = clip(line.rstrip("\r\n"), SOURCE_LINE_CHARS)
    if '"' in line or "'" in line:
        line = _NAMED.sub(rf"\1\2{MASK}\2", line)
        if _LINKED.search(line):
            line = _VALUE.sub(rf"\1\2{MASK}\2", line)
    if "@" in line:
        line = _MAIL.sub(MASK, line)
    return _TOKEN.sub(MASK, line) if "k_" in line else line
