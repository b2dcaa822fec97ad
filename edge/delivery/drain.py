"""Sends the spool to Kafka, oldest segment first, as soon as Kafka is available again."""

import asyncio
import errno
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from broker.errors import SinkUnavailable
from edge.delivery import segments
from edge.delivery.chunk_delivery import send_partitioned
from edge.delivery.chunker import EventTuple
from edge.delivery.quarantine import QuarantineReason
from edge.delivery.sink import Sink
from edge.delivery.spool import Spool
from schemas.chunks import decode_chunk

log = logging.getLogger(__name__)

BATCH_EVENTS: Final = 400
_BATCH_BYTES: Final = 4 * 1024 * 1024
_LOOK_SECONDS: Final = 0.1
"""Interval of checks whether Kafka is available again."""
_TRANSIENT: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors of opening a file after which a retry can succeed."""


class OpenedSegment(NamedTuple):
    """A segment's events by record, and its damaged and unfinished bytes."""

    chunks: list[list[EventTuple]]
    damaged: int
    unfinished: int = 0

    @property
    def events(self) -> int:
        """The number of readable events."""
        return sum(map(len, self.chunks))

    @property
    def reason(self) -> QuarantineReason | None:
        """Why the segment is quarantined even if all its events are stored; None if it contains nothing else."""
        if self.damaged:
            return QuarantineReason.DAMAGED
        return QuarantineReason.UNFINISHED if self.unfinished else None


async def drain_forever(spool: Spool, sink: Sink) -> None:
    """Drain whenever there are segments and the sink is available, until cancelled.

    A segment is removed only when all of it is stored. An interrupted one is sent again from its start:
    events that are written twice are deduplicated downstream. A segment with damaged bytes or too large
    events is quarantined, so that it doesn't block the next one.
    """
    while True:
        await spool.has_segments.wait()
        if not sink.up:
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        segment = await spool.seal_oldest()
        if segment is None:
            spool.has_segments.clear()
            continue
        try:
            await _drain(segment, spool, sink)
        except SinkUnavailable as error:
            log.debug("can't drain %s, retrying: %s", segment.name, error, extra={"event": "drain_paused"})
            await asyncio.sleep(_LOOK_SECONDS)


async def _drain(segment: Path, spool: Spool, sink: Sink) -> None:
    try:
        opened = await asyncio.to_thread(open_segment, segment, spool.acknowledged_bytes(segment))
    except FileNotFoundError:
        log.warning(
            "another process removed %s from the spool folder",
            segment.name,
            extra={"event": "segment_vanished"},
        )
        return await spool.remove(segment)
    except OSError as error:
        if error.errno in _TRANSIENT:
            raise SinkUnavailable(str(error)) from error
        log.exception("can't read %s, quarantining it", segment.name, extra={"event": "segment_unreadable"})
        return await spool.quarantine(segment, QuarantineReason.DAMAGED)
    too_large = await send_all(opened, sink)
    log.info(
        "drained %d events of %s", opened.events - too_large, segment.name, extra={"event": "segment_drained"}
    )
    reason = opened.reason
    if too_large and reason is not QuarantineReason.DAMAGED:
        reason = QuarantineReason.TOO_LARGE
    if reason is None:
        return await spool.remove(segment)
    spool.too_large_events += too_large
    log.log(
        logging.INFO if reason is QuarantineReason.UNFINISHED else logging.ERROR,
        "quarantined %s: %d damaged bytes, %d unfinished bytes, %d events too large for the topic; "
        "see `svc spool list`",
        segment.name,
        opened.damaged,
        opened.unfinished,
        too_large,
        extra={"event": "segment_quarantined"},
    )
    return await spool.quarantine(segment, reason)


async def send_all(opened: OpenedSegment, sink: Sink) -> int:
    """Send a segment's events in order; returns the number that is too large for the topic. Raises SinkUnavailable."""
    too_large = 0
    for events in batches(opened.chunks):
        too_large += len(await send_partitioned(sink, events))
    return too_large


def open_segment(segment: Path, acknowledged: int = 0) -> OpenedSegment:
    """Read and decode a segment, of which `acknowledged` bytes are known to be acknowledged. Raises OSError."""
    records, damaged, unfinished = segments.read(segment)
    valid_bytes = sum([segments.size_of(record) for record in records])
    if valid_bytes + damaged < acknowledged:
        # Bytes that look unfinished, or are missing, belong to completed writes.
        damaged, unfinished = acknowledged - valid_bytes, 0
    chunks = []
    for record in records:
        try:
            chunks.append(record_events(record))
        except msgspec.DecodeError:
            damaged += len(record)
    return OpenedSegment(chunks, damaged, unfinished)


def record_events(record: bytes) -> list[EventTuple]:
    """The events of one record of a segment. Raises DecodeError if it isn't a chunk."""
    events = decode_chunk(record)
    if any(len(event.id) != 16 for event in events):
        raise msgspec.DecodeError("an id is 16 bytes long")
    return [(event.project, event.id, event.received_ms, event.sdk, event.payload) for event in events]


def batches(chunks: Iterable[list[EventTuple]]) -> Iterator[list[EventTuple]]:
    """Batches of spooled events in their order, large enough for full chunks of every partition.

    A batch is acknowledged before the next is sent, which preserves the order; small batches would be slow.
    """
    batch: list[EventTuple] = []
    size = 0
    for events in chunks:
        batch += events
        size += sum([len(event[4]) for event in events])
        if len(batch) >= BATCH_EVENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
