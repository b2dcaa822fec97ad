"""Empties the spool into Kafka, oldest first, as soon as Kafka is back."""

import asyncio
import errno
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from broker.errors import SinkUnavailable
from edge.delivery import segments
from edge.delivery.publisher import EventTuple, send_partitioned
from edge.delivery.quarantine import QuarantineReason
from edge.delivery.sink import Sink
from edge.delivery.spool import Spool
from schemas.chunks import decode_chunk

log = logging.getLogger(__name__)

_PACK_EVENTS: Final = 400
_PACK_BYTES: Final = 1024 * 1024
_LOOK_SECONDS: Final = 0.1
"""How often an open circuit is looked at: cheap, and a drain that starts a tenth of a second late harms nobody."""


_PASSING: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""What ends by itself when a file can't be read; nothing else is tried again."""


class Opened(NamedTuple):
    """A segment's events, record by record; the bytes that hold no sound record, and those at the end that were never finished."""

    chunks: list[list[EventTuple]]
    damaged: int
    unfinished: int = 0

    @property
    def events(self) -> int:
        """The number of events that can be read."""
        return sum(map(len, self.chunks))

    @property
    def reason(self) -> QuarantineReason | None:
        """Why the segment is set aside even when all its events are safe; None where nothing else stands in it."""
        if self.damaged:
            return QuarantineReason.DAMAGED
        return QuarantineReason.UNFINISHED if self.unfinished else None


async def drain_forever(spool: Spool, sink: Sink) -> None:
    """Drain whenever there is something to drain and a sink to take it, until cancelled.

    A segment is removed only when all of it is safe; one that was interrupted is sent again from its beginning, and what
    was written twice is dropped downstream by its ids. One with anything that Kafka doesn't have in the end, be it bytes that
    can't be read or an event that is too large for the topic, is set aside, so that it holds up nothing behind it.
    """
    while True:
        await spool.filled.wait()
        if not sink.up:
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        segment = await spool.oldest()
        if segment is None:
            spool.filled.clear()
            continue
        try:
            await _drain(segment, spool, sink)
        except SinkUnavailable as error:
            log.debug("draining %s waits: %s", segment.name, error)
            await asyncio.sleep(_LOOK_SECONDS)


async def _drain(segment: Path, spool: Spool, sink: Sink) -> None:
    try:
        opened = await asyncio.to_thread(open_segment, segment, spool.acknowledged_bytes(segment))
    except FileNotFoundError:
        log.warning("%s was removed by somebody else", segment.name)
        return await spool.remove(segment)
    except OSError as error:
        if error.errno in _PASSING:
            raise SinkUnavailable(str(error)) from error
        log.exception("%s can't be read and is set aside", segment.name)
        return await spool.keep(segment, QuarantineReason.DAMAGED)
    too_large = await send_all(opened, sink)
    log.info("drained %d events of %s", opened.events - too_large, segment.name)
    reason = opened.reason
    if too_large and reason is not QuarantineReason.DAMAGED:
        reason = QuarantineReason.TOO_LARGE
    if reason is None:
        return await spool.remove(segment)
    spool.too_large_events += too_large
    log.log(
        logging.INFO if reason is QuarantineReason.UNFINISHED else logging.ERROR,
        "%s is set aside: %d bytes are damaged, %d were never finished, %d events are too large for the topic; see `svc spool list`",
        segment.name,
        opened.damaged,
        opened.unfinished,
        too_large,
    )
    return await spool.keep(segment, reason)


async def send_all(opened: Opened, sink: Sink) -> int:
    """Send a segment's events in order; returns how many are too large for the topic. Raises SinkUnavailable."""
    too_large = 0
    for events in packs(opened.chunks):
        too_large += len(await send_partitioned(sink, events))
    return too_large


def open_segment(segment: Path, acknowledged: int = 0) -> Opened:
    """Read and decode a segment, of which so many bytes are known to have been answered for. Raises OSError."""
    records, damaged, unfinished = segments.read(segment)
    valid_bytes = sum([segments.size_of(record) for record in records])
    if valid_bytes + damaged < acknowledged:
        # What looks like an unfinished write, or isn't there at all, was finished.
        damaged, unfinished = acknowledged - valid_bytes, 0
    chunks = []
    for record in records:
        try:
            chunks.append(_events(record))
        except msgspec.DecodeError:
            damaged += len(record)
    return Opened(chunks, damaged, unfinished)


def _events(record: bytes) -> list[EventTuple]:
    events = decode_chunk(record)
    if any(len(event.id) != 16 for event in events):
        raise msgspec.DecodeError("an id is 16 bytes long")
    return [(event.project, event.id, event.received_ms, event.sdk, event.payload) for event in events]


def packs(chunks: Iterable[list[EventTuple]]) -> Iterator[list[EventTuple]]:
    """The events of spooled records in their order, as many at a time as make full chunks of every partition.

    One pack is acknowledged before the next is sent, which keeps the order; small ones would make that slow.
    """
    pack: list[EventTuple] = []
    size = 0
    for events in chunks:
        pack += events
        size += sum([len(event[4]) for event in events])
        if len(pack) >= _PACK_EVENTS or size >= _PACK_BYTES:
            yield pack
            pack, size = [], 0
    if pack:
        yield pack
