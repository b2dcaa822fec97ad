"""Records to write."""

from collections.abc import Sequence
from typing import NamedTuple


class Message(NamedTuple):
    """A record to write; without a value it is a tombstone of its key."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
