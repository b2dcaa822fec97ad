"""Which uploaded map is that of a frame's file. Pure.

An event has no place for debug ids (protocol, section 2.7): a file is found by release and path, or, where its name
has a hash of its content, by the name alone.
"""

import re
from collections.abc import Sequence
from typing import Final

from grouping.fingerprint.built_files import script_name
from schemas.read_api import ArtifactLink

_ORIGIN: Final = re.compile(r"\A[a-zA-Z][a-zA-Z0-9+.-]*://[^/]*")
_NOT_HASHED: Final = "bundle"
"""The name that grouping gives to all bundles of React Native."""
_ABOVE: Final = re.compile(r"\A(?:\.{0,2}/)+")
_SCHEME: Final = re.compile(r"\A[a-z-]+://[^/]*/")


def file_path(file: str) -> str:
    """The path of a frame's file, or of an uploaded one: without origin, query and leading `/`, `./` or `~/`."""
    path = _ORIGIN.sub("", file.replace("\\", "/")).partition("?")[0].partition("#")[0]
    return path.removeprefix("~").lstrip("/").removeprefix("./")


def base_name(path: str) -> str:
    """The part after the last slash."""
    return path.rpartition("/")[2]


def source_path(source: str) -> str:
    """The path of a source as people know it: relative to the folder of the sources, without a bundler's scheme."""
    return _ABOVE.sub("", _SCHEME.sub("", source))


def map_of(file: str, release: str, links: Sequence[ArtifactLink]) -> ArtifactLink | None:
    """The map of a frame's file, among links of the same file name."""
    path = file_path(file)
    name = base_name(path)
    named = [link for link in links if link.kind == "sourceMap" and base_name(link.path) == name]
    own = [link for link in named if link.release == release and _is_same(link.path, path)]
    if own:
        longest = max(own, key=lambda link: len(link.path))
        rivals = {link.digest for link in own if len(link.path) == len(longest.path)}
        return longest if len(rivals) == 1 else None
    is_unique = len({link.digest for link in named}) == 1
    return named[0] if is_unique and _is_hashed(path, name) else None


def _is_same(path: str, other: str) -> bool:
    """Whether one path is the end of the other: an address has more in front, a bare name less."""
    return f"/{path}".endswith(f"/{other}") or f"/{other}".endswith(f"/{path}")


def _is_hashed(path: str, name: str) -> bool:
    return not name[:1].isdecimal() and script_name(path) not in (name, _NOT_HASHED)
