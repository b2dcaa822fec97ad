"""Empties the spool into Kafka, oldest first, as soon as Kafka is back."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from edge.chunker import EventTuple
from edge.delivery import Delivery
from edge.sink import Sink, Unavailable
from edge.spool import Spool, records
from schemas.chunks import decode_chunk

log = logging.getLogger(__name__)

_PACK_EVENTS: Final = 400
_PACK_BYTES: Final = 1024 * 1024
_LOOK_SECONDS: Final = 0.1
"""How often an open circuit is looked at: cheap, and a drain that starts a tenth of a second late harms nobody."""


async def drain_forever(spool: Spool, sink: Sink, delivery: Delivery) -> None:
    """Drain whenever there is something to drain and a sink to take it, until cancelled.

    A segment is removed only when all of it is safe; one that was interrupted is sent again from its beginning, and what
    was written twice is dropped downstream by its ids.
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
            count = await _send_segment(segment, delivery)
        except Unavailable as error:
            log.debug("draining %s waits: %s", segment.name, error)
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            await spool.remove(segment)
            log.info("drained %d events of %s", count, segment.name)


async def _send_segment(segment: Path, delivery: Delivery) -> int:
    count = 0
    for events in packs(await asyncio.to_thread(lambda: list(records(segment)))):
        await delivery.send_spread(events)
        count += len(events)
    return count


def packs(found: Iterable[bytes]) -> Iterator[list[EventTuple]]:
    """The events of spooled records in their order, as many at a time as make full chunks of every partition.

    One pack is acknowledged before the next is sent, which keeps the order; small ones would make that slow.
    """
    pack: list[EventTuple] = []
    size = 0
    for record in found:
        for event in decode_chunk(record):
            pack.append((event.project, event.id, event.received_ms, event.sdk, event.payload))
            size += len(event.payload)
        if len(pack) >= _PACK_EVENTS or size >= _PACK_BYTES:
            yield pack
            pack, size = [], 0
    if pack:
        yield pack
