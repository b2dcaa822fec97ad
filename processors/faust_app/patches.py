"""Patches of faust-streaming 0.15.3, which skips and repeats records after a restart or a rebalance.

- Faust resumes the source partitions at the end of a recovery while records already flow (the changelogs were
  read that way), and seeks only afterwards. Records fetched in between are delivered, and the seek collides
  with the fetch in flight. `OrderedRecovery` stops the flow first; the wrapped methods resume it at their
  end.
- Faust seeks to committed offsets. Without a committed offset it doesn't seek at all and loses the records
  already fetched. `PlacedConsumer` seeks to the next offsets that the stages restored.
- A fetch that was under way when the flow stopped may end after the seek of the next recovery, and take the
  records that this recovery must read: the table has a hole, or the recovery waits for ever. Seeks of
  `PlacedConsumer` wait for the fetch, and its records are dropped.
- A broker answers the requests of a connection in order, so the seek and the requests of a recovery wait
  behind a fetch that waits for records. `PromptThread` shortens that wait from 1.5 s, `PlacedConsumer` once
  more until a recovery has ended.
- A batch of Faust's looks for records as often as it may wait for them, 50 times a second. `arrivals` lets it
  wait for the first one.
- Faust makes a message, an event and some tasks of each record of a table: 0.2 to 0.8 ms. `PlacedConsumer`
  passes all records that it fetched of a table to `OrderedRecovery.read` in one call.

`tests/unit/processors/faust_app/test_patches.py` fails when Faust changes the wrapped code.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

from aiokafka import AIOKafkaConsumer
from faust.streams import Stream
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP, Message

from broker.client import pause_metadata_retries
from processors.faust_app.fence import Lease, RebalanceFence

# mode names a class's logger after its module; these classes log as Faust's own do.
FAUST_LOG = logging.getLogger("faust")
PartitionOffsets = Callable[[set[TP]], Awaitable[dict[TP, int]]]
FETCH_WAIT_MS: Final = 500
"""How long a broker keeps a fetch that finds nothing, and how long a seek waits for one."""
RECOVERY_WAIT_MS: Final = 20
"""The same while a recovery asks for offsets and seeks: idle workers would ask brokers too often."""


def arrivals(stream: Stream[Any]) -> asyncio.Event:
    """Let the batches of a stream wait for a record before they wait for more.

    The event says that a record came; each batch clears it.
    """
    arrived, wait = asyncio.Event(), stream.wait_for_stopped

    def note(value: Any) -> Any:
        arrived.set()
        return value

    async def wait_for_stopped(*conditions: Any, timeout: Any = None) -> bool:
        await wait(cast(Any, arrived))
        return await wait(*conditions, timeout=timeout)

    stream.add_processor(note)
    stream.wait_for_stopped = wait_for_stopped  # type: ignore[method-assign]
    return arrived


class OrderedRecovery(Recovery):
    """A recovery that reads tables in bulk, and delivers no source record before its end."""

    logger = FAUST_LOG

    def read(self, tp: TP, records: Sequence[Any]) -> None:
        """Apply consecutive records of a table's partition; ends the recovery with the last one that it needs.

        In place of `_slurp_changelogs`, whose queue remains empty.
        """
        if tp not in self.active_tps:
            return
        known = cast(int | None, self.active_offsets[tp])
        # A seek goes to the last record that is known.
        new = [record for record in records if known is None or record.offset > known]
        table: Any = self.tp_to_table[tp]
        if new and table.data.read_records(tp.partition, new, self.app.consumer_generation_id):
            self.active_offsets[tp] = new[-1].offset
        if self.in_recovery and not self.need_recovery():
            self._set_recovery_ended()
            self.signal_recovery_end.set()

    def _set_recovery_started(self) -> None:
        # The end of an earlier one.
        self.signal_recovery_end.clear()
        super()._set_recovery_started()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        self.app.consumer.stop_flow()
        self._open_fence()
        await super().on_recovery_completed(generation_id)

    async def _resume_streams(self, generation_id: int = 0) -> None:
        self.app.consumer.stop_flow()
        self._open_fence()
        await super()._resume_streams(generation_id)

    def _open_fence(self) -> None:
        # No record of this generation can have been delivered yet, and agents drop those of an earlier one.
        fence: RebalanceFence | None = getattr(self.app, "fence", None)
        if fence is not None:
            fence.open = True


class OrderedTableManager(TableManager):
    """A table manager with an `OrderedRecovery`."""

    logger = FAUST_LOG

    async def on_start(self) -> None:
        """Start; Faust first waits a second for tables that are added late, and ours never are."""
        await self._update_channels()
        await self.recovery.start()

    @property
    def recovery(self) -> Recovery:
        """The recovery service, created at its first use."""
        if self._recovery is None:
            self._recovery = OrderedRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class PromptThread(AIOKafkaConsumerThread):
    """A consumer's thread whose fetches don't delay other requests."""

    logger = FAUST_LOG

    def on_crash(self, msg: str, *fmt: Any, **_: Any) -> None:
        """Log the crash; mode would print a bare traceback."""
        FAUST_LOG.critical(msg.format(*fmt), exc_info=True, extra={"event": "consumer_thread_crashed"})

    async def commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit, unless it has crashed: a crash closes its loop."""
        return not self.thread_loop.is_closed() and await super().commit(offsets)

    async def stop(self) -> None:
        """Stop; one that has crashed has closed its loop."""
        try:
            await super().stop()
        except RuntimeError:
            if not self.thread_loop.is_closed():
                raise

    def _create_worker_consumer(self, transport: Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Faust hard-codes the value, and aiokafka reads it when the consumer starts.
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        return consumer


class PlacedConsumer(Consumer):
    """A consumer that seeks to the stages' next offsets. The app's factory sets `next_offsets` and `lease`."""

    logger = FAUST_LOG
    next_offsets: PartitionOffsets
    lease: Lease

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._stops = 0
        self._delivered = asyncio.Event()
        self._delivered.set()

    @property
    def member_id(self) -> str:
        """The id under which the broker knows this member of the group; empty before the first."""
        coordinator = self._coordinator
        return "" if coordinator is None else str(coordinator.member_id)

    @property
    def group_error(self) -> Exception | None:
        """The refusal of the group's coordinator.

        aiokafka raises it only in a fetch, and without an assignment there is none.
        """
        coordinator = self._coordinator
        return None if coordinator is None else cast(Exception | None, coordinator._pending_exception)

    @property
    def _coordinator(self) -> Any:
        consumer = cast(Any, self._thread)._consumer
        return None if consumer is None else consumer._coordinator

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return PromptThread(self, loop=self.loop, beacon=self.beacon)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """The coordinator has answered: tables open their partitions now."""
        self._watch_heartbeats()
        self.lease.renew()
        await super().on_partitions_assigned(assigned, generation_id)

    def stop_flow(self) -> None:
        """Discard fetched records: a seek follows each stop."""
        self._stops += 1
        super().stop_flow()

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Message]]:  # noqa: ARG002
        """Fetch and deliver records, until the flow stops."""
        # Faust asks for the next records when it has handled the last ones.
        self._delivered.set()
        if not self.flow_active:
            await self.wait(cast(Any, self.can_resume_flow))
        # aiokafka takes an empty set for all partitions.
        partitions = set(self._get_active_partitions())
        if not partitions:
            await self.sleep(FETCH_WAIT_MS / 1000)
        if not partitions or not self.flow_active or self.should_stop:
            return
        self._delivered.clear()
        stops = self._stops
        fetched = dict(await self._getmany(partitions, self._fetch_wait_ms() / 1000))
        if self._stops != stops:
            return
        tables = cast(OrderedTableManager, self.app.tables)
        for tp in fetched.keys() & partitions:
            if tp.topic in tables.changelog_topics:
                cast(OrderedRecovery, tables.recovery).read(tp, fetched.pop(tp))
        for tp, record in self.scheduler.iterate(fetched):
            if self._stops != stops:
                return
            if tp in self._get_active_partitions() or tp in self._buffered_partitions:
                self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
                yield tp, self._to_message(tp, record)

    def _fetch_wait_ms(self) -> int:
        """How long a fetch waits now; those that aiokafka sends by itself do too."""
        fence: RebalanceFence = cast(Any, self.app).fence
        wait_ms = FETCH_WAIT_MS if fence.open else RECOVERY_WAIT_MS
        consumer = cast(Any, self._thread)._consumer
        if consumer is not None:
            consumer._fetcher._fetch_max_wait_ms = wait_ms
        return wait_ms

    async def _drain_messages(self, fetcher: Any) -> None:
        try:
            await super()._drain_messages(fetcher)
        finally:
            self._delivered.set()

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Seek, once no fetch is under way that could take later records."""
        await self._delivered.wait()
        await super().seek_wait(partitions)

    async def perform_seek(self) -> None:
        """Seek to the committed offsets, then to the stages' next offsets."""
        await self._delivered.wait()
        await super().perform_seek()
        offsets = await self.next_offsets(self.assignment())
        if offsets:
            await self.seek_wait(offsets)
            # Records before a stage's next offset are done, but never acknowledged. Without new
            # events the group would stay behind, and processes that wait for it would wait forever.
            done = {
                tp: offset for tp, offset in offsets.items() if offset > (self._committed_offset[tp] or 0)
            }
            if done:
                await self._commit(done)
            # Faust commits nothing while its first acknowledgement is beyond the offset that it believes committed.
            self._committed_offset.update(offsets)

    def _watch_heartbeats(self) -> None:
        coordinator = self._coordinator
        if getattr(coordinator, "_lease", None) is self.lease:
            return
        heartbeat = coordinator._do_heartbeat

        async def watched() -> bool:
            answered: bool = await heartbeat()
            if answered:
                self.lease.renew()
            return answered

        pause_metadata_retries(coordinator._client)
        coordinator._do_heartbeat = watched
        coordinator._lease = self.lease
