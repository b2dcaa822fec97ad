"""Copies what the parts of a process know of themselves into its metrics, once a second."""

import asyncio
from typing import Final

from prometheus_client import Counter

from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.publisher import ChunkDelivery, Chunker
from edge.delivery.spool import Spool
from edge.metrics import EdgeMetrics
from schemas.topics import Topic

_PAUSE_SECONDS: Final = 1.0


class Gauges:
    """Shows these parts of one process."""

    def __init__(
        self, metrics: EdgeMetrics, chunker: Chunker, delivery: ChunkDelivery, sink: KafkaSink, spool: Spool
    ) -> None:
        self._metrics = metrics
        self._chunker = chunker
        self._delivery = delivery
        self._sink = sink
        self._spool = spool
        self._shown: dict[tuple[Counter, str], int] = {}

    async def run(self) -> None:
        """Show them until cancelled."""
        while True:
            # A person may have replayed or removed what was set aside.
            await self._spool.count_quarantined()
            self.show()
            await asyncio.sleep(_PAUSE_SECONDS)

    def show(self) -> None:
        """Show them as they are now."""
        metrics, sink, spool = self._metrics, self._sink, self._spool
        metrics.waiting.set(self._chunker.waiting_events)
        metrics.spool_bytes.set(spool.size)
        metrics.spool_age.set(spool.age_seconds)
        metrics.quarantined_bytes.set(spool.quarantined_bytes)
        metrics.kafka_up.set(sink.up and Topic.EVENTS not in sink.failures)
        metrics.undelivered.set(min(sink.silent_seconds, spool.age_seconds))
        self._raise(metrics.spooled, self._delivery.spooled_events)
        self._raise(metrics.kafka_drops, sink.drops)
        self._raise(metrics.too_large, spool.too_large_events)
        for error, count in sink.errors.items():
            self._raise(metrics.kafka_errors, count, error)
        for reason, count in spool.quarantined.items():
            self._raise(metrics.quarantined, count, reason.value)

    def _raise(self, counter: Counter, count: int, label: str = "") -> None:
        before = self._shown.get((counter, label), 0)
        (counter.labels(label) if label else counter).inc(count - before)
        self._shown[counter, label] = count
