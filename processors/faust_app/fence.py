"""Who may work when: takes pass while partitions are ours and stand still while they change hands."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from broker.errors import PartitionsLost


class RebalanceFence:
    """Closed while the group rebalances. Closing waits for the takes inside: so no two owners ever write at once."""

    def __init__(self) -> None:
        self.open = False
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """A take's work, from its first decision to its acknowledgement."""
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    async def close(self, seconds: float) -> None:
        """Let no more takes in and wait for those inside. Raises TimeoutError."""
        self.open = False
        async with asyncio.timeout(seconds):
            await self._empty.wait()


class Lease:
    """The worker's right to its partitions, renewed by each heartbeat that the group's coordinator answered.

    A process that was frozen, or cut off, for longer than the session may have lost its partitions without knowing: what it
    writes then could replace what the new owner has written. So it is asked before each write.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._renewed: float | None = None

    def renew(self) -> None:
        """The coordinator has just answered."""
        self._renewed = time.monotonic()

    def check(self) -> None:
        """Raises PartitionsLost where the last answer is too long ago."""
        silent = 0.0 if self._renewed is None else time.monotonic() - self._renewed
        if silent > self._seconds:
            raise PartitionsLost(
                f"no heartbeat for {silent:.1f} s: the partitions may belong to another worker"
            )
