"""The aggregator's position: how far `issue-deltas` is folded, as the table `seen` holds it."""

from typing import Final

import msgspec
from msgspec import Struct


class DeltasPosition(Struct, array_like=True, frozen=True):
    """The last offset of `issue-deltas` that is folded, with two sums that reveal a damaged `issues` topic.

    `issues` are those opened until the offset `until` (`Life.since`): where a batch was interrupted, the topic
    has newer ones.
    """

    offset: int
    issues: int
    versions: int
    until: int = 1 << 62


def deltas_key(partition: int) -> bytes:
    """Key of the `DeltasPosition` of one partition of `issue-deltas`."""
    return b"deltas/%d" % partition


encode_position: Final = msgspec.msgpack.Encoder().encode
decode_position: Final = msgspec.msgpack.Decoder(DeltasPosition).decode
