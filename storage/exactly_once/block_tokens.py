"""Whether the deduplication token of a planned block can be relied on. Pure.

The server's counts since the plan decide it, never a clock. A token can say too little: each table that
`ingest` feeds remembers only the tokens of its last blocks. It can also say too much: a server that was
killed may remember the token of a part that it lost. A completion or a repair may have inserted rows that one
try of an insert lacked and the next try inserts too; each pauses inserts before
(`docs/decisions/writer.md`).
"""

from typing import Final

from msgspec import Struct

_WINDOW_PARTS: Final = 2
"""Blocks of others may be inserted between the check and the insert: half of a window must be left."""


class ServerMark(Struct, frozen=True):
    """The server's counters before a block was planned.

    `life` identifies the run of the server, and of replicated tables also their partitions and how old tokens
    may be. `blocks` are the last block numbers of `TABLES`. `pauses` is one more than the last block number
    of the pauses, and 0 while one is in force.
    """

    life: int
    blocks: tuple[int, ...]
    pauses: int


class ServerState(Struct, frozen=True):
    """The server's mark now, and how many tokens each of `TABLES` remembers."""

    mark: ServerMark
    windows: tuple[int, ...]


def is_reliable(mark: ServerMark, state: ServerState) -> bool:
    """Whether the token of a block that was planned with the mark still holds.

    It holds if each table remembers it, and no repair was made without it. False may come too early, True
    never.
    """
    if mark.life != state.mark.life or len(mark.blocks) != len(state.mark.blocks):
        return False
    return 0 < mark.pauses == state.mark.pauses and all(
        # Fewer than before: the table was emptied. The block itself takes a place too.
        now >= then and (now - then + 1) * _WINDOW_PARTS <= window
        for then, now, window in zip(mark.blocks, state.mark.blocks, state.windows, strict=True)
    )


def encode_mark(mark: ServerMark) -> str:
    """The mark as text without spaces."""
    return ".".join(f"{number:x}" for number in (mark.life, mark.pauses, *mark.blocks))


def decode_mark(text: str) -> ServerMark:
    """The mark that `encode_mark` wrote. Raises ValueError."""
    life, pauses, *blocks = (int(number, 16) for number in text.split("."))
    return ServerMark(life, tuple(blocks), pauses)
