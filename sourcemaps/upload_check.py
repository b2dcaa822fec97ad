"""Checks an uploaded source map, and says in one sentence why it is refused. Pure.

A mapping of R8 is recognised by its lines.
"""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from schemas.read_api import ArtifactKind
from sourcemaps.matching import base_name, file_path
from sourcemaps.worker_messages import Upload

_CHUNK: Final = 1 << 20
_SEPARATOR: Final = re.compile(rb"[,;]")
_COMMA, _SEMICOLON = b",;"
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_DIGITS: Final = np.full(256, 64, np.uint8)
_DIGITS[np.frombuffer(_BASE64, np.uint8)] = np.arange(64)
_MAX_DIGITS: Final = 7
"""Of a value of 32 bits."""
_R8_LINE: Final = re.compile(rb"^[\w.$-]+ -> [\w.$-]+:\s*$", re.MULTILINE)
_TAIL: Final = 4096
_ID: Final = "[0-9a-fA-F-]{32,36}"
_DEBUG_ID: Final = re.compile(rf"//[#@] debugId=({_ID})".encode())
_MAP_URL: Final = re.compile(rb"//[#@] sourceMappingURL=([^\s'\"]+)")


class Refused(Exception):
    """The upload can't be used; the text says why."""


class _SourceMap(Struct):
    version: int
    sources: list[str | None] = []
    contents: list[str | None] | None = field(default=None, name="sourcesContent")
    mappings: str = ""
    file: str | None = None
    debug_id: str = field(default="", name="debugId")
    old_debug_id: str = field(default="", name="debug_id")
    sections: "list[_Section] | None" = None


class _Section(Struct):
    offset: dict[str, int]
    map: _SourceMap


_decode: Final = msgspec.json.Decoder(_SourceMap).decode


def check(upload: Upload) -> tuple[ArtifactKind, str]:
    """Return the kind of an upload and its debug id, empty without one. Raises Refused."""
    if _R8_LINE.search(upload.content):
        return "r8", ""
    try:
        source_map = _decode(upload.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"it is no source map, which is JSON, and no mapping of R8: {error}") from None
    if source_map.version != 3:
        raise Refused(f"its version is {source_map.version}: only 3 is known")
    _check_owner(upload, source_map)
    parts = [source_map] if source_map.sections is None else [one.map for one in source_map.sections]
    if any(part.sections is not None for part in parts):
        raise Refused("its sections have sections, which the format doesn't allow")
    if not any(part.sources for part in parts):
        raise Refused("it has no sources")
    if not any(part.contents and any(part.contents) for part in parts):
        raise Refused("it has no sourcesContent: let the bundler include the sources")
    for part in parts:
        is_whole = part is source_map and upload.script
        _check_mappings(part, upload.script.split(b"\n") if is_whole else None, upload.path)
    return "sourceMap", _debug_id(source_map)


def _debug_id(source_map: _SourceMap) -> str:
    given = source_map.debug_id or source_map.old_debug_id
    return given.lower() if re.fullmatch(_ID, given) else ""


def _check_owner(upload: Upload, source_map: _SourceMap) -> None:
    """Raises Refused if the map, or the file, names another one."""
    name, tail = base_name(upload.path), upload.script[-_TAIL:]
    if source_map.file and (own := base_name(file_path(source_map.file))) != name:
        raise Refused(f"it is the map of {own}, not of {name}")
    urls = [url.decode(errors="replace") for url in _MAP_URL.findall(tail)]
    if urls and upload.name and not urls[-1].startswith("data:"):
        own = unquote(base_name(file_path(urls[-1])))
        if own != base_name(file_path(upload.name)):
            raise Refused(f"{name} names {own} as its map, not {base_name(upload.name)}")
    ids, own_id = [found.decode().lower() for found in _DEBUG_ID.findall(tail)], _debug_id(source_map)
    if ids and own_id and ids[-1] != own_id:
        raise Refused(
            f"its debug id is {own_id}, and that of {name} is {ids[-1]}: it is the map of another file"
        )


def _check_mappings(source_map: _SourceMap, lines: list[bytes] | None, path: str) -> None:
    """Raises Refused for mappings that are no list of segments in order, or that go beyond the lines."""
    try:
        text = source_map.mappings.encode("ascii")
    except UnicodeEncodeError:
        raise Refused("its mappings aren't base 64 VLQ") from None
    line, source = 0, 0
    ends = np.zeros(len(lines or ()))
    for chunk in _chunks(text):
        at_lines, columns, sources = _segments(chunk)
        if (columns < 0).any():
            raise Refused("its mappings are in the wrong order: columns of a line must increase")
        passed = source + np.cumsum(sources)
        if passed.size and not 0 <= passed.min() <= passed.max() < len(source_map.sources):
            raise Refused("its mappings name a source that it doesn't have")
        source = int(passed[-1]) if passed.size else source
        at_lines += line
        line += chunk.count(b";")
        if lines is not None and at_lines.size:
            if at_lines.max() >= len(lines):
                raise Refused(f"it maps more lines than {path} has: it is the map of another file")
            ends += np.bincount(at_lines, columns, len(lines))
    if lines is not None and (ends > np.fromiter(map(len, lines), float)).any():
        raise Refused(f"it maps columns beyond the lines of {path}: it is the map of another file")


def _chunks(text: bytes) -> Iterator[bytes]:
    """The text in pieces that end with a separator."""
    start = 0
    while start < len(text):
        found = _SEPARATOR.search(text, start + _CHUNK, start + 2 * _CHUNK)
        if found is None and len(text) > start + 2 * _CHUNK:
            raise Refused("its mappings aren't base 64 VLQ")
        end = len(text) if found is None else found.end()
        yield text[start:end]
        start = end


def _segments(chunk: bytes) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Of each segment its line in the chunk, by how much its column grows, and its source, if it has one."""
    code = np.frombuffer(chunk, np.uint8)
    is_digit = (code != _COMMA) & (code != _SEMICOLON)
    places, digits = np.flatnonzero(is_digit), _DIGITS[code[is_digit]]
    if not digits.size:
        return (np.zeros(0, np.int64),) * 3
    is_last = digits < 32
    starts = np.flatnonzero(np.concatenate(([True], is_last[:-1])))
    lengths = np.diff(np.append(starts, digits.size))
    # The digits of a value follow each other, and the last one ends it.
    is_cut = not is_last[-1] or (places[1:][~is_last[:-1]] - places[:-1][~is_last[:-1]] > 1).any()
    if (digits > 63).any() or is_cut or lengths.max() > _MAX_DIGITS:
        raise Refused("its mappings aren't base 64 VLQ")
    shifts = 5 * (np.arange(digits.size) - np.repeat(starts, lengths))
    raw = np.add.reduceat((digits & 31).astype(np.int64) << shifts, starts)
    values = np.where(raw & 1, -(raw >> 1), raw >> 1)
    segment = np.cumsum(~is_digit)[places[starts]]
    first = np.flatnonzero(np.concatenate(([True], segment[1:] != segment[:-1])))
    fields = np.diff(np.append(first, values.size))
    if not np.isin(fields, (1, 4, 5)).all():
        raise Refused("a segment of its mappings has not 1, 4 or 5 fields")
    lines = np.cumsum(code == _SEMICOLON)[places[starts[first]]]
    return lines, values[first], values[first[fields > 1] + 1]
