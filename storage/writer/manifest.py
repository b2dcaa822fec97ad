"""What makes a block repeatable: which records it holds, as text that fits into an offset commit. Pure.

Before a block is inserted, each of its partitions is committed at its first record with the whole block in the metadata; after it,
past its last record. Whoever owns one of the partitions next reads from that which block is open and repeats exactly that, under
the same token. The ranges of all partitions stand in each, so that a block can be repeated by the owner of any of them.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

MAX_RANGES: Final = 64
"""Partitions in one block: the broker keeps 4,096 bytes of metadata, a range takes up to 60."""
_PLAN: Final = "plan1"
_DIRECT: Final = "direct1"
_DONE: Final = "done1"


class NoBlock(Struct, frozen=True):
    """Nothing under way; `seen` is the last source position taken, -1 for none; `again` as of a range."""

    seen: int = -1
    again: int = -1


class RecordRange(Struct, frozen=True, order=True):
    """Records `first` to `last` of a partition; `seen` is the last source position taken before them, -1 for none.

    `again` is the offset up to which records may be stored already, -1 where none is.
    """

    partition: int
    first: int
    last: int
    seen: int
    again: int = -1


class BlockManifest(Struct, frozen=True):
    """A block under way: its ranges in the order of their partitions, and when it was planned (Unix ms).

    `direct` says that rows of it may be in tables without its token, so that it must be completed, not inserted.
    """

    ranges: tuple[RecordRange, ...]
    at_ms: int
    direct: bool = False

    def token(self, topic: str) -> str:
        """The insert's deduplication token: equal for equal ranges, whoever inserts them and when."""
        spans = ",".join(f"{r.partition}:{r.first}-{r.last}" for r in self.ranges)
        return f"{topic}/{spans}"

    def ends(self, seen: Mapping[int, int]) -> dict[int, tuple[int, NoBlock]]:
        """Once it is written: of each partition the next offset, and what is known there, given the last source positions taken."""
        return {
            r.partition: (
                r.last + 1,
                NoBlock(seen[r.partition], r.again if r.again > r.last + 1 else -1),
            )
            for r in self.ranges
        }


def encode(state: BlockManifest | NoBlock) -> str:
    """The metadata of an offset commit."""
    if isinstance(state, NoBlock):
        return f"{_DONE} {state.seen}{_told(' ', state.again)}"
    ranges = ",".join(
        f"{r.partition}:{r.first}:{r.last - r.first}:{r.seen}{_told(':', r.again)}" for r in state.ranges
    )
    return f"{_DIRECT if state.direct else _PLAN} {state.at_ms} {ranges}"


def decode(text: str) -> BlockManifest | NoBlock:
    """What `encode` wrote. Text of another origin (none, or an offset set by hand) says that nothing is known."""
    kind, _, rest = text.partition(" ")
    try:
        if kind in {_PLAN, _DIRECT}:
            at_ms, _, ranges = rest.partition(" ")
            spans = tuple(_range(part) for part in ranges.split(","))
            return BlockManifest(ranges=spans, at_ms=int(at_ms), direct=kind == _DIRECT)
        if kind == _DONE:
            return NoBlock(*map(int, rest.split(" ", 1)))
    except ValueError:
        pass
    return NoBlock()


def _told(mark: str, again: int) -> str:
    return "" if again < 0 else f"{mark}{again}"


def _range(text: str) -> RecordRange:
    partition, first, more, seen, *again = (int(number) for number in text.split(":"))
    return RecordRange(partition, first, first + more, seen, *again)
