"""The plan that makes a block repeatable: its records, as text that fits into an offset commit. Pure.

Before a block is inserted, each of its partitions is committed at its first record with the plan in the
metadata; after it, past its last record. The next owner of any of its partitions finds the plan and replays
exactly that block under the same token.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from storage.exactly_once.block_tokens import ServerMark, decode_mark, encode_mark

MAX_RANGES: Final = 64
"""Partitions in one block: the broker allows 4,096 bytes of metadata, and a range takes up to 60."""
_PLAN: Final = "plan1"
_DONE: Final = "done1"


class NoBlock(Struct, frozen=True):
    """No block in progress; `source_offset` and `verify_until` as in `RecordRange`."""

    source_offset: int = -1
    verify_until: int = -1


class RecordRange(Struct, frozen=True, order=True):
    """Records `first` to `last` of a partition.

    `source_offset` is the last source position before them, -1 for none. Rows of source positions
    before `verify_until` may be stored already (-1: nothing).
    """

    partition: int
    first: int
    last: int
    source_offset: int
    verify_until: int = -1


class BlockPlan(Struct, frozen=True):
    """A block in progress: its ranges in partition order, and the server's mark before it was planned.

    `since` is the time of its first record (Unix ms).
    """

    ranges: tuple[RecordRange, ...]
    mark: ServerMark
    since: int

    def token(self, topic: str) -> str:
        """The insert's deduplication token: equal for equal records in one run of the server, from any writer.

        Ranges alone don't say which records: a topic that was deleted and created again counts from 0 again. A
        server that was killed may remember a token without its rows; a plan made since then has another one.
        """
        spans = ",".join(f"{r.partition}:{r.first}-{r.last}" for r in self.ranges)
        return f"{topic}/{spans}/{self.since}/{self.mark.life:x}"

    def ends(self, source_offsets: Mapping[int, int]) -> dict[int, tuple[int, NoBlock]]:
        """The commits after the insert, given the last source positions.

        Each is the next offset and state of a partition.
        """
        # The bound stays until the last source position before it is passed: rows up to it may be stored already.
        passed = {r.partition: source_offsets[r.partition] for r in self.ranges}
        return {
            r.partition: (
                r.last + 1,
                NoBlock(
                    passed[r.partition], r.verify_until if r.verify_until > passed[r.partition] + 1 else -1
                ),
            )
            for r in self.ranges
        }


def encode_plan(state: BlockPlan | NoBlock) -> str:
    """The metadata of an offset commit."""
    if isinstance(state, NoBlock):
        return f"{_DONE} {state.source_offset}{_optional(' ', state.verify_until)}"
    ranges = ",".join(
        # The length, not the end: it is shorter, and a plan has up to MAX_RANGES of them.
        f"{r.partition}:{r.first}:{r.last - r.first}:{r.source_offset}{_optional(':', r.verify_until)}"
        for r in state.ranges
    )
    return f"{_PLAN} {encode_mark(state.mark)} {state.since} {ranges}"


def decode_plan(text: str) -> BlockPlan | NoBlock:
    """The state that `encode_plan` wrote, or an empty `NoBlock` for text of another origin.

    Such text is empty, or of an offset set by hand.
    """
    kind, _, fields = text.partition(" ")
    try:
        if kind == _PLAN:
            mark, since, ranges = fields.split(" ")
            return BlockPlan(tuple(map(_range, ranges.split(","))), decode_mark(mark), int(since))
        if kind == _DONE:
            return NoBlock(*map(int, fields.split(" ", 1)))
    except ValueError:
        # A lost plan counts nothing twice: without one, a table that has rows is completed by ids.
        pass
    return NoBlock()


def _optional(separator: str, offset: int) -> str:
    return "" if offset < 0 else f"{separator}{offset}"


def _range(text: str) -> RecordRange:
    partition, first, more, source_offset, *verify_until = (int(number) for number in text.split(":"))
    return RecordRange(partition, first, first + more, source_offset, *verify_until)
