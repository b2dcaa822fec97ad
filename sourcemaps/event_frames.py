"""The frames of an event that maps can resolve, and the event's error with the resolved ones. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from grouping.fingerprint.built_files import is_minified
from grouping.fingerprint.event_view import GroupingError, GroupingFrame
from schemas.json_values import decode_any
from schemas.read_api import ArtifactLink, IssueSource
from sourcemaps.matching import base_name, file_path, map_of
from sourcemaps.worker_messages import Position, ResolvedFrame

MAX_PROBLEMS: Final = 5
_LIBRARIES: Final = "node_modules/"
_ANDROID: Final = "android"
Key = tuple[int, int]
"""An error of the chain, outermost first, and a frame of its stack."""
Found = dict[Key, list[ResolvedFrame]]


class SentEvent(Struct):
    """An event as it was sent, by the fields that name its frames."""

    error: GroupingError
    platform: str = ""
    release: str = ""

    @property
    def errors(self) -> list[GroupingError]:
        """The error and its causes."""
        errors = [self.error]
        while (cause := errors[-1].cause) is not None:
            errors.append(cause)
        return errors

    @property
    def frames(self) -> Iterator[tuple[Key, GroupingFrame]]:
        """All frames."""
        for number, error in enumerate(self.errors):
            for index, frame in enumerate(error.stack or ()):
                yield (number, index), frame

    @property
    def names(self) -> list[str]:
        """The names of its files."""
        return sorted({base_name(file_path(frame.file or "")) for _, frame in self.frames} - {""})

    @property
    def types(self) -> list[str]:
        """The classes of its errors."""
        return [error.type or "" for error in self.errors]


class MapFrames(Struct, frozen=True):
    """The frames of an event that one map resolves."""

    link: ArtifactLink
    positions: dict[Key, Position]


decode_sent: Final = msgspec.json.Decoder(SentEvent).decode


def by_map(event: SentEvent, links: Sequence[ArtifactLink]) -> tuple[list[MapFrames], list[str]]:
    """The frames of each map, and sentences about files of builds that have none."""
    mappings = (link for link in links if link.kind == "r8" and event.platform == _ANDROID)
    mapping = next(mappings, None)
    maps: dict[str, MapFrames] = {}
    problems: dict[str, None] = {}

    @cache
    def link_of(file: str) -> ArtifactLink | None:
        """Stacks have many frames of one file, and a file may have a map in each of many releases."""
        return map_of(file, event.release, links)

    for key, frame in event.frames:
        position = Position(frame.function or "", frame.line or 0, frame.column or 0)
        link = link_of(frame.file or "") if position.line and position.column else None
        if link is None and "." in position.function:
            link = mapping
        if link is not None:
            maps.setdefault(link.digest, MapFrames(link, {})).positions[key] = position
        elif frame.in_app and is_minified(frame):
            problems[f"{event.release} has no source map of {frame.file}"] = None
    return list(maps.values()), list(problems)[:MAX_PROBLEMS]


def resolved_error(payload: bytes, found: Found, types: Mapping[str, str]) -> dict[str, Any]:
    """The error of a payload with the frames and the types that were found."""
    error: dict[str, Any] | None = decode_any(payload)["error"]
    outermost = error or {}
    number = 0
    while error is not None:
        error["type"] = types.get(error["type"], error["type"])
        sent = enumerate(error.get("stack") or ())
        error["stack"] = [one for index, frame in sent for one in _frames(frame, found.get((number, index)))]
        error, number = error.get("cause"), number + 1
    return outermost


def _frames(sent: dict[str, Any], found: list[ResolvedFrame] | None) -> list[dict[str, Any]]:
    if not found:
        return [sent]
    kept = {name: value for name, value in sent.items() if name != "absolutePath"}
    return [
        kept
        | {
            "function": one.function,
            "file": one.file or sent.get("file"),
            "line": one.line,
            "column": one.column or None,
            "inApp": bool(sent.get("inApp")) and _LIBRARIES not in one.file,
            "preContext": one.before,
            "contextLine": one.source,
            "postContext": one.after,
        }
        for one in found
    ]


def source_of(event: SentEvent, found: Found) -> IssueSource | None:
    """The application's first frame; None if no map resolved it."""
    for key, frame in event.frames:
        for one in found.get(key, ()) if frame.in_app else ():
            if _LIBRARIES not in one.file:
                at = f"{one.file or frame.file}:{one.line}"
                return IssueSource(f"{one.function} in {at}" if one.function else at, one.source.strip())
        if frame.in_app and key not in found:
            return None
    return None
