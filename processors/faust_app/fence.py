"""Fencing: a worker handles batches only while the group assigns it their partitions."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from broker.errors import PartitionsLost
from processors.grouper.grouper_stage import IdLookUp, IdsByPartition


class Interrupted(Exception):
    """The group rebalances: the batch, which has written nothing yet, is dropped and read again by its next owner."""


class RebalanceFence:
    """Closed while the group rebalances.

    Closing waits for the batches in progress, so a new owner isn't ousted by them.
    """

    def __init__(self) -> None:
        self.open = False
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._waits: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[None]:
        """Encloses a wait of a batch that has written nothing: closing ends it. Raises Interrupted."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._waits.add(scope)
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise Interrupted from None
        finally:
            self._waits.discard(scope)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Encloses the handling of a batch, from its first decision to its acknowledgement."""
        self._in_progress += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_progress -= 1
            if not self._in_progress:
                self._idle.set()

    async def stop_batches(self, seconds: float) -> None:
        """Admit no more batches, interrupt those that wait, and wait for those in progress. Raises TimeoutError."""
        self.open = False
        for scope in self._waits:
            scope.reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            raise TimeoutError(
                f"the group gives the partitions away, and a batch in progress did not end within {seconds:.0f} s"
            ) from None


class InterruptibleLookUp:
    """Ends a look-up once the fence is closed: ClickHouse may be away for longer than the group waits."""

    def __init__(self, stored_ids: IdLookUp, fence: RebalanceFence) -> None:
        self._stored_ids = stored_ids
        self._fence = fence

    async def among(self, ids: IdsByPartition) -> set[tuple[int, bytes]]:
        """As `IdLookUp.among`. Raises Interrupted."""
        async with self._fence.interruptible():
            return await self._stored_ids.among(ids)


class Lease:
    """The worker's right to its partitions, renewed by each heartbeat that the group's coordinator answered.

    A process that was frozen or disconnected for longer than the session may have lost its partitions without
    knowing. It finds out here before it writes; if its clock was stopped too, the log shows it
    (`processors.changelog`).
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._renewed: float | None = None

    def renew(self) -> None:
        self._renewed = time.monotonic()

    def check(self) -> None:
        """Raise PartitionsLost if the last answer is too long ago."""
        silent = 0.0 if self._renewed is None else time.monotonic() - self._renewed
        if silent > self.seconds:
            raise PartitionsLost(
                f"no heartbeat for {silent:.1f} s: the partitions may belong to another worker"
            )
