"""Source lines of a file that a code object names: any text may stand there, and only a regular file is read."""

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
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAMED: Final = re.compile(
    r"(?i)((?:token|key|password|passwd|pwd|secret|email|phone|username|(?:google|apple|meta)_?sub)[\"']?\]?\s*[:=]\s*[a-z]{0,2})"
    r"([\"'])(?:\\.|(?!\2).)+\2"
)
_LINKED: Final = re.compile(r"(?i)link_?by")
_VALUE: Final = re.compile(r"(:\s*[a-zA-Z]{0,2})([\"'])(?:\\.|(?!\2).)+\2")


def source_lines(filename: str) -> list[str]:
    """The lines, or none: where there is no such file, it is no regular one (a FIFO, a device), or is too large.

    What the program's own `linecache` holds comes first: it is as old as the code that runs.
    """
    try:
        if filename.startswith("<"):
            return linecache.getlines(filename)
        return _held(filename) or _on_disk(filename) or _from_loader(filename)
    except Exception:
        return []


def _held(filename: str) -> list[str]:
    entry = linecache.cache.get(filename)
    return entry[2] if entry is not None and len(entry) == 4 else []


def _from_loader(filename: str) -> list[str]:
    """What the module's loader gives, such as one that imports from an archive; see `linecache.lazycache`."""
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
    """Where to look. To open a path of the network would be to call a machine that the code's name chooses."""
    if filename.startswith(("//", "\\\\")):
        return
    yield filename
    if not os.path.isabs(filename):  # noqa: PTH117
        yield from (os.path.join(entry, filename) for entry in sys.path if isinstance(entry, str))  # noqa: PTH118


def _content(path: str) -> bytes | None:
    """The file's bytes. It is looked at before it is opened: opening alone may wait for ever, or set a device going."""
    try:
        if not _is_readable(os.stat(path)):  # noqa: PTH116
            return None
        with os.fdopen(os.open(path, _READ_ONLY), "rb") as file:
            opened = os.fstat(file.fileno())
            # Not to its end: a file of /proc says that it is empty, and may have none.
            return file.read(opened.st_size) if _is_readable(opened) else None
    except (OSError, ValueError):
        return None


def _is_readable(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES


def shown(line: str) -> str:
    """The line as a frame shows it: values that go by the name of a secret, mail addresses and tokens are `***`.

    A line with `linkBy` in it shows no value at all: what `set_user` only hashes must not leave as source.
    """
    line = clip(line.rstrip("\r\n"), SOURCE_LINE_CHARS)
    if '"' in line or "'" in line:
        line = _NAMED.sub(rf"\1\2{MASK}\2", line)
        if _LINKED.search(line):
            line = _VALUE.sub(rf"\1\2{MASK}\2", line)
    if "@" in line:
        line = _MAIL.sub(MASK, line)
    return _TOKEN.sub(MASK, line) if "k_" in line else line
