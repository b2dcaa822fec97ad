"""A record to write."""

from collections.abc import Sequence
from typing import NamedTuple


class Message(NamedTuple):
    """A record to write; without a value it removes what its key names from a compacted topic."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
