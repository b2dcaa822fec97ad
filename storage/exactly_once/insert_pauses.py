"""Insert pauses: a process that compares tables asks the writers to hold back their inserts of events.

Under load there is rarely a moment without an insert, which `storage/exactly_once/consistent_read.py` needs.
Correctness doesn't depend on writers honouring a pause. A pause expires by the server's clock if its holder
is killed or frozen. A writer waits only for the pauses that were active when it wanted to insert, so that a
series of pauses doesn't starve it.

An insert that may come later than a pause's holder waits for announces itself before it looks for pauses. Until
its announcement expires it counts as running.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from storage.client import ClickHouseError, Client

SET: Final = """
    INSERT INTO insert_pauses (id, version, until)
    SELECT {id:UUID}, {version:UInt32}, now64(3, 'UTC') + toIntervalMillisecond({milliseconds:UInt64})"""
IN_FORCE: Final = "SELECT id FROM insert_pauses FINAL WHERE until > now64(3, 'UTC')"
ANNOUNCE: Final = """
    INSERT INTO announced_inserts (until)
    SELECT now64(3, 'UTC') + toIntervalMillisecond({milliseconds:UInt64})"""
_AFTER_SESSION_SECONDS: Final = 5
"""The server ends a session up to two seconds late."""


class Pause:
    """A pause of one holder on one server or several; active from the first `extend` on."""

    def __init__(self, *clients: Client) -> None:
        self._clients = clients
        self._id = uuid.uuid4()
        self._version = 0
        self._until = 0.0

    def extend(self, seconds: float) -> None:
        """Let it last half this long from now at least. Raises ClickHouseError.

        This is for writers that check from now on.
        """
        now = time.monotonic()
        if self._until - now > seconds / 2 > 0:
            return
        self._version += 1
        for client in self._clients:
            self._set(client, seconds)
        self._until = now + seconds

    def _set(self, client: Client, seconds: float) -> None:
        values = {"id": self._id, "version": self._version, "milliseconds": int(seconds * 1000)}
        client.command(SET, parameters=values)

    def end(self) -> None:
        """End the pause; if a server doesn't answer, it expires there."""
        self._version += 1
        for client in self._clients:
            with suppress(ClickHouseError):
                self._set(client, 0)


@contextmanager
def paused(*clients: Client) -> Iterator[Pause]:
    """A pause that ends with the `with` block."""
    pause = Pause(*clients)
    try:
        yield pause
    finally:
        pause.end()


def in_force(client: Client) -> set[str]:
    """The ids of active pauses. Raises ClickHouseError."""
    return {str(row[0]) for row in client.query(IN_FORCE).result_rows}


def announce(client: Client, seconds: int) -> None:
    """Announce an insert in a session of this length, which has begun. Raises ClickHouseError."""
    client.command(ANNOUNCE, parameters={"milliseconds": (seconds + _AFTER_SESSION_SECONDS) * 1000})
