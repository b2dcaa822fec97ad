"""Empties the spool into Kafka, oldest first, as soon as Kafka is back."""

import asyncio
import logging
from pathlib import Path
from typing import Final

from edge.delivery import Delivery
from edge.sink import Sink, Unavailable
from edge.spool import Spool, records

log = logging.getLogger(__name__)

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
            log.info("drained %d records of %s", count, segment.name)


async def _send_segment(segment: Path, delivery: Delivery) -> int:
    found = await asyncio.to_thread(lambda: list(records(segment)))
    for record in found:
        await delivery.send_record(record)
    return len(found)
