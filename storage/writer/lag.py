"""How far the writer is behind what the broker holds: asked for, so that it is told also while nothing is read."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from broker.errors import KafkaError
from storage.writer.metrics import WriterMetrics
from storage.writer.source import GroupedSource

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 10.0


async def show_lag(
    source: GroupedSource,
    written: Mapping[int, int],
    metrics: WriterMetrics,
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Show, until cancelled, how many records of each partition come after what is written; `written` is its owner's and changes."""
    shown: set[int] = set()
    while True:
        await asyncio.sleep(look_seconds)
        held = set(written)
        for partition in shown - held:
            metrics.lag.remove(source.topic, str(partition))
        shown &= held
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                bounds = await source.bounds(held)
        except (KafkaError, OSError, TimeoutError) as error:
            # What was shown last stands; that Kafka is away is told by the session.
            log.debug("the ends of %s are not known: %r", source.topic, error)
            continue
        for partition, (begin, end) in bounds.items():
            if partition in written:
                lag = end - max(begin, written[partition])
                metrics.lag.labels(source.topic, partition).set(max(0, lag))
                shown.add(partition)
