"""The aggregator's position: how far `issue-deltas` is folded, as the table `seen` holds it."""

from typing import Final

import msgspec
from msgspec import Struct

from schemas.issues import Command

LAST_COMMANDS: Final = 20
"""Commands that a position names.

An issue that forwards a command sends it again only if its process was killed just before."""


class DeltasPosition(Struct, array_like=True, frozen=True):
    """The last offset of `issue-deltas` that is folded, with two sums that reveal a damaged `issues` topic.

    `commands` are the last ones up to this offset (`command_name`): a rebuild recognizes by them commands
    that are only repeated behind the position. `issues` are those opened until the offset `until`
    (`Life.since`): where a batch was interrupted, the topic has newer ones.
    """

    offset: int
    issues: int
    versions: int
    commands: tuple[str, ...] = ()
    until: int = 1 << 62


def command_name(command: Command) -> str:
    """A command to an issue: several issues may get one with the same id."""
    return f"{command.issue}-{command.id}"


def deltas_key(partition: int) -> bytes:
    """Key of the `DeltasPosition` of one partition of `issue-deltas`."""
    return b"deltas/%d" % partition


encode_position: Final = msgspec.msgpack.Encoder().encode
decode_position: Final = msgspec.msgpack.Decoder(DeltasPosition).decode
