"""Empties the spool into Kafka, oldest first, as soon as Kafka is back."""

import asyncio
import errno
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from edge import segments
from edge.chunker import EventTuple
from edge.delivery import Delivery
from edge.sink import Sink, Unavailable
from edge.spool import Spool
from schemas.chunks import decode_chunk

log = logging.getLogger(__name__)

_PACK_EVENTS: Final = 400
_PACK_BYTES: Final = 1024 * 1024
_LOOK_SECONDS: Final = 0.1
"""How often an open circuit is looked at: cheap, and a drain that starts a tenth of a second late harms nobody."""


_PASSING: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""What ends by itself when a file can't be read; nothing else is tried again."""


class Unread(NamedTuple):
    """A segment's events, record by record, and the number of its records that can't be read."""

    chunks: list[list[EventTuple]]
    unreadable: int


async def drain_forever(spool: Spool, sink: Sink, delivery: Delivery) -> None:
    """Drain whenever there is something to drain and a sink to take it, until cancelled.

    A segment is removed only when all of it is safe; one that was interrupted is sent again from its beginning, and what
    was written twice is dropped downstream by its ids. One that can't be read whole is set aside once the rest of it is safe.
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
            await _drain(segment, spool, delivery)
        except Unavailable as error:
            log.debug("draining %s waits: %s", segment.name, error)
            await asyncio.sleep(_LOOK_SECONDS)


async def _drain(segment: Path, spool: Spool, delivery: Delivery) -> None:
    try:
        chunks, unreadable = await asyncio.to_thread(open_segment, segment)
    except OSError as error:
        if error.errno in _PASSING:
            raise Unavailable(str(error)) from error
        log.exception("%s can't be read and is set aside", segment.name)
        return await spool.set_aside(segment)
    for events in packs(chunks):
        await delivery.send_spread(events)
    log.info("drained %d events of %s", sum(map(len, chunks)), segment.name)
    if not unreadable:
        return await spool.remove(segment)
    log.error("%s is set aside: %d of its records can't be read", segment.name, unreadable)
    return await spool.set_aside(segment)


def open_segment(segment: Path) -> Unread:
    """Read and decode a segment. Raises OSError."""
    records, unreadable = segments.read(segment)
    chunks = []
    for record in records:
        try:
            chunks.append(_events(record))
        except msgspec.DecodeError:
            unreadable += 1
    return Unread(chunks, unreadable)


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
