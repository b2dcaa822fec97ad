"""Applies one map to frames, by the library symbolic. It runs in the worker: hostile maps can crash the library."""

import tempfile
from typing import Final

import zstandard
from msgspec import Struct, msgpack
from symbolic.proguard import ProguardMapper
from symbolic.sourcemapcache import SourceMapCache

from schemas.read_api import ArtifactKind
from sourcemaps.matching import source_path
from sourcemaps.worker_messages import Position, ResolvedFrame

_CONTEXT_LINES: Final = 5
_UNKNOWN: Final = "<unknown>"
_MAX_NUMBER: Final = (1 << 32) - 1
_MAX_TEXT: Final = 1_000
"""Characters of a line or a name: a source may be one line of megabytes."""
_MAX_INLINED: Final = 50
"""Frames of one that was sent."""


class Content(Struct, frozen=True):
    """The stored parts of an upload."""

    map: bytes
    script: bytes


class OpenSourceMap:
    """A source map, with the file that it is of: from its code the library knows the functions."""

    def __init__(self, content: Content) -> None:
        self._cache = SourceMapCache.from_bytes(content.script, content.map)

    def frames(self, position: Position) -> list[ResolvedFrame]:
        """The original frame; none if the map doesn't know the position."""
        if max(position.line, position.column) > _MAX_NUMBER:
            return []
        found = self._cache.lookup(position.line, position.column, _CONTEXT_LINES)
        if found is None or not found.src:
            return []
        name = found.function_name or _UNKNOWN
        return [
            ResolvedFrame(
                position.function if name == _UNKNOWN else name[:_MAX_TEXT],
                source_path(found.src)[:_MAX_TEXT],
                found.line,
                found.col,
                [_shown(line) for line in found.pre_context],
                _shown(found.context_line or ""),
                [_shown(line) for line in found.post_context],
            )
        ]

    def class_name(self, name: str) -> str:  # noqa: ARG002 - a script's classes aren't renamed one by one
        """None."""
        return ""


class OpenMapping:
    """A mapping of R8 or ProGuard."""

    def __init__(self, content: Content) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content.map)
            file.flush()
            self._mapper = ProguardMapper.open(file.name)

    def frames(self, position: Position) -> list[ResolvedFrame]:
        """The method's frame, after those that were inlined into it."""
        owner, _, method = position.function.rpartition(".")
        if position.line > _MAX_NUMBER:
            return []
        found = self._mapper.remap_frame(owner, method, position.line)
        if found:
            return [
                ResolvedFrame(
                    f"{one.class_name}.{one.method}"[:_MAX_TEXT],
                    (one.file or "")[:_MAX_TEXT],
                    one.line or position.line,
                )
                for one in found[:_MAX_INLINED]
            ]
        named = self._mapper.remap_method(owner, method)
        return [ResolvedFrame(".".join(named)[:_MAX_TEXT], "", position.line)] if named else []

    def class_name(self, name: str) -> str:
        """By the mapping."""
        return (self._mapper.remap_class(name) or "")[:_MAX_TEXT]


def _shown(line: str) -> str:
    return line[:_MAX_TEXT].rstrip("\r\n")


OpenMap = OpenSourceMap | OpenMapping


def open_map(kind: ArtifactKind, content: Content) -> OpenMap:
    """Raises the errors of the library."""
    return OpenMapping(content) if kind == "r8" else OpenSourceMap(content)


def packed(content: Content) -> bytes:
    """The content as it is stored."""
    return zstandard.ZstdCompressor().compress(msgpack.encode(content))


def unpacked(stored: bytes) -> Content:
    """The content that was stored."""
    return msgpack.decode(zstandard.ZstdDecompressor().decompress(stored), type=Content)
