"""Requests to the worker, and its responses."""

from typing import Final

from msgspec import Struct, msgpack

from schemas.read_api import ArtifactKind

LENGTH_BYTES: Final = 4
"""A message is preceded by its length."""


class Upload(Struct, frozen=True):
    """The map of the file `path`. `name` is the map's own name, `script` the file; both may be empty."""

    path: str
    name: str
    content: bytes
    script: bytes = b""


class Position(Struct, frozen=True):
    """The place of a frame as it was sent."""

    function: str
    line: int
    column: int


class ResolvedFrame(Struct, frozen=True):
    """A frame's original place; `source` is its line, with the lines `before` and `after` it."""

    function: str
    file: str
    line: int
    column: int = 0
    before: list[str] = []
    source: str = ""
    after: list[str] = []


class Check(Struct, frozen=True, tag=True):
    """Whether an upload can be used."""

    upload: Upload


class Resolve(Struct, frozen=True, tag=True):
    """Where the positions and the classes of a map were. `content` is as stored; None if the worker may have it."""

    digest: str
    kind: ArtifactKind
    positions: list[Position]
    classes: list[str]
    content: bytes | None = None


class Checked(Struct, frozen=True, tag=True):
    """An upload that can be used, and its content as it is stored."""

    kind: ArtifactKind
    debug_id: str
    digest: str
    content: bytes


class NotUsable(Struct, frozen=True, tag=True):
    """An upload that can't be used."""

    reason: str


class Resolved(Struct, frozen=True, tag=True):
    """The frames of each position, and the names of the classes, in the order asked."""

    frames: list[list[ResolvedFrame]]
    classes: list[str]


class ContentMissing(Struct, frozen=True, tag=True):
    """The worker doesn't have the map's content any more."""


Answer = Checked | NotUsable | Resolved | ContentMissing
encode: Final = msgpack.Encoder().encode
decode_question: Final = msgpack.Decoder(Check | Resolve).decode
decode_answer: Final = msgpack.Decoder(Answer).decode
