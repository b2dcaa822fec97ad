"""What keeps faust-streaming 0.15.3 from skipping and repeating records after a restart or a rebalance.

At the end of a recovery Faust resumes the source partitions while records already flow (the changelogs were read that way), and
seeks only afterwards; what was fetched in between is delivered, then the seek and the fetch in flight collide. Here the flow
stops first; the wrapped methods resume it at their end. And the seek goes to our own positions, not to the committed ones: where
nothing was ever committed, Faust would not seek at all and lose what it had fetched. And a broker answers the requests of a
connection one after the other: behind a fetch that waits for records stand the seek and the questions of a recovery, so a fetch
waits shorter than Faust's 1.5 s.

`tests/unit/processors/faust_app/test_patches.py` notices when Faust changes in these places.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

from broker.client import pause_metadata_retries
from processors.faust_app.fence import Lease, RebalanceFence

# The library names a class's logger for its module; these are Faust's own, and speak as it does.
FAUST_LOG = logging.getLogger("faust")
PartitionOffsets = Callable[[set[TP]], Awaitable[dict[TP, int]]]
FETCH_WAIT_MS: Final = 200
"""How long a broker keeps a fetch that finds nothing."""


class OrderedRecovery(Recovery):
    """Recovery that lets nothing through before its end."""

    logger = FAUST_LOG

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Resume the sources after a recovery."""
        self.app.consumer.stop_flow()
        self._open()
        await super().on_recovery_completed(generation_id)

    async def _resume_streams(self, generation_id: int = 0) -> None:
        self.app.consumer.stop_flow()
        self._open()
        await super()._resume_streams(generation_id)

    def _open(self) -> None:
        # Nothing of this generation can have been delivered yet, and takes drop what is left of an earlier one.
        gate: RebalanceFence | None = getattr(self.app, "gate", None)
        if gate is not None:
            gate.open = True


class OrderedTableManager(TableManager):
    """A table manager with that recovery."""

    logger = FAUST_LOG

    @property
    def recovery(self) -> Recovery:
        """The recovery service, made at its first use."""
        if self._recovery is None:
            self._recovery = OrderedRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class PromptThread(AIOKafkaConsumerThread):
    """A consumer's thread whose fetches don't keep other requests waiting."""

    logger = FAUST_LOG

    def on_crash(self, msg: str, *fmt: Any, **_: Any) -> None:
        """A line of the log, where mode would print the traceback as it stands."""
        FAUST_LOG.critical(msg.format(*fmt), exc_info=True)

    def _create_worker_consumer(self, transport: Transport) -> AIOKafkaConsumer:
        made = super()._create_worker_consumer(transport)
        # Faust writes the figure in its code, and aiokafka reads it when the consumer starts.
        made._fetch_max_wait_ms = FETCH_WAIT_MS
        return made


class PlacedConsumer(Consumer):
    """A consumer that reads on where our own records end. `places` and `lease` are set by the app's factory."""

    logger = FAUST_LOG
    places: PartitionOffsets
    lease: Lease

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return PromptThread(self, loop=self.loop, beacon=self.beacon)

    async def perform_seek(self) -> None:
        """Seek to what Faust thinks, then to what we know."""
        await super().perform_seek()
        self._watch_heartbeats()
        places = await self.places(self.assignment())
        if places:
            await self.seek_wait(places)
            # Faust commits nothing while its first acknowledgement lies beyond what it takes for committed.
            self._committed_offset.update(places)

    def _watch_heartbeats(self) -> None:
        thread: Any = self._thread
        coordinator = thread._consumer._coordinator
        if getattr(coordinator, "_lease", None) is self.lease:
            return
        beat = coordinator._do_heartbeat

        async def watched() -> bool:
            answered: bool = await beat()
            if answered:
                self.lease.renew()
            return answered

        pause_metadata_retries(coordinator._client)
        coordinator._do_heartbeat = watched
        coordinator._lease = self.lease
        self.lease.renew()
