"""The writer's housekeeping, now and every hour: partitions past their retention are dropped, and broken parts are told."""

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from typing import Final

from storage.repair.damage import broken_parts
from storage.writer.inserter import Inserter
from storage.writer.metrics import WriterMetrics
from storage.writer.retention import drop_expired

log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 3600.0


async def run_housekeeping(inserter: Inserter, metrics: WriterMetrics) -> None:
    """Drop what has expired and tell what is broken, until cancelled."""
    while True:
        broken = await inserter.run(broken_parts)
        metrics.broken_parts.set(len(broken))
        for part in broken:
            log.error(
                "ClickHouse has set aside %s of %s as broken: run `svc reconcile --repair`",
                part.name,
                part.table,
            )
        today = datetime.now(UTC).date()
        for partition in await inserter.run(partial(drop_expired, today=today)):
            metrics.dropped_partitions.labels(partition.table).inc()
            log.info("dropped %s of %s: past its retention", partition.name, partition.table)
        await asyncio.sleep(_EVERY_SECONDS)
