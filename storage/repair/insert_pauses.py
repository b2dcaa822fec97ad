"""Pauses: whoever compares tables asks the writers to hold their inserts of events back for a moment.

Under load there is hardly a moment without an insert, and sums of two tables can only be compared in one (`storage/repair/consistent_read.py`). A pause
makes one; nothing's exactness depends on its being kept. It ends by itself, by the server's clock, when its holder is killed or frozen. A
writer waits only for the pauses that were in force when its insert was due, so that many of them in a row don't starve it.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from storage.client import ClickHouseError, Client, scalar

_SET: Final = """
    INSERT INTO insert_pauses (id, version, until)
    SELECT {id:UUID}, {version:UInt32}, now64(3, 'UTC') + toIntervalMillisecond({milliseconds:UInt64})"""
_IN_FORCE: Final = "SELECT id FROM insert_pauses FINAL WHERE until > now64(3, 'UTC')"
_SINCE: Final = (
    "SELECT count() FROM insert_pauses WHERE until >= now64(3, 'UTC') - toIntervalSecond({seconds:UInt32})"
)
_CLOCK_SECONDS: Final = 10


class Pause:
    """A pause of one holder; it is in force once `extend` was called."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._id = uuid.uuid4()
        self._version = 0

    def extend(self, seconds: float) -> None:
        """Let it last that long from now on, at least for the writers that ask from now on. Raises ClickHouseError."""
        self._version += 1
        values = {"id": self._id, "version": self._version, "milliseconds": int(seconds * 1000)}
        self._client.command(_SET, parameters=values)

    def end(self) -> None:
        """Let the inserts go on; without a server that answers, it ends by itself."""
        with suppress(ClickHouseError):
            self.extend(0)


@contextmanager
def paused(client: Client) -> Iterator[Pause]:
    """A pause that has ended when the block is left."""
    pause = Pause(client)
    try:
        yield pause
    finally:
        pause.end()


def in_force(client: Client) -> set[str]:
    """The pauses that are in force. Raises ClickHouseError."""
    return {str(row[0]) for row in client.query(_IN_FORCE).result_rows}


def any_since(client: Client, seconds: float) -> bool:
    """Whether a pause was in force in the last `seconds`, or a little before. Raises ClickHouseError.

    True may be said too often, never too seldom.
    """
    return bool(scalar(client, _SINCE, {"seconds": int(max(0.0, seconds)) + _CLOCK_SECONDS}))
