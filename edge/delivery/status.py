"""Reports the state of delivery: to readyz, and once a second to the metrics."""

import asyncio
from datetime import UTC, datetime
from typing import Final

from prometheus_client import Counter

from broker.send_errors import SendErrorKind
from edge.delivery.chunker import Chunker
from edge.delivery.kafka_sink import Failure, KafkaSink
from edge.delivery.spool import Spool
from edge.edge_metrics import EdgeMetrics
from edge.limits.connections import ConnectionLimits
from schemas.health import Part
from schemas.topics import Topic

_PAUSE_SECONDS: Final = 1.0


def delivery_part(
    failure: Failure | None, *, attempted: bool, has_delivered: bool, spool_full: bool, spool_bytes: int
) -> Part:
    """The part `delivery`.

    An edge that spools is ready: it keeps its promise, and its clients have no better alternative. It is not
    ready before it has tried to reach Kafka, with a full spool, or if Kafka denies access to a process that
    has never delivered. So a rollout with wrong credentials stops before it has replaced the processes that
    deliver.
    """
    if not attempted:
        return Part(False, "connecting to Kafka")
    if failure is None:
        return Part(True)
    cause = _cause(failure)
    if spool_full:
        return Part(False, f"Kafka accepts no events and the spool is full: {cause}")
    denied = failure.kind is SendErrorKind.DENIED
    if denied and not has_delivered:
        return Part(False, f"Kafka denies access and has never accepted events of this process: {cause}")
    state = "denies access" if denied else "accepts no events"
    return Part(True, f"Kafka {state}: {cause}; {spool_bytes} bytes in the spool")


def outcomes_part(failure: Failure | None) -> Part:
    """The part `outcomes`, which is always ready: lost counts are no reason to stop ingestion."""
    return Part(True, f"Kafka accepts no outcomes: {_cause(failure)}" if failure else "")


def _cause(failure: Failure) -> str:
    return f"{failure.detail}, since {datetime.fromtimestamp(failure.since, UTC):%Y-%m-%dT%H:%M:%SZ}"


class Gauges:
    """Copies the state of one process's parts into its metrics."""

    def __init__(
        self,
        metrics: EdgeMetrics,
        chunker: Chunker,
        sink: KafkaSink,
        spool: Spool,
        connections: ConnectionLimits,
    ) -> None:
        self._metrics = metrics
        self._chunker = chunker
        self._sink = sink
        self._spool = spool
        self._connections = connections
        self._counted: dict[tuple[Counter, str], int] = {}

    async def run(self) -> None:
        """Update the metrics until cancelled."""
        while True:
            # An operator may have replayed or removed quarantined segments.
            await self._spool.count_quarantined()
            self.update()
            await asyncio.sleep(_PAUSE_SECONDS)

    def update(self) -> None:
        metrics, sink, spool = self._metrics, self._sink, self._spool
        metrics.connections.set(self._connections.total)
        metrics.waiting.set(self._chunker.waiting_events)
        metrics.spool_bytes.set(spool.size)
        metrics.spool_age.set(spool.age_seconds)
        metrics.quarantined_bytes.set(spool.quarantined_bytes)
        metrics.kafka_up.set(sink.up and Topic.EVENTS not in sink.failures)
        metrics.undelivered.set(min(sink.silent_seconds, spool.age_seconds))
        self._raise(metrics.too_large, spool.too_large_events)
        for error, count in sink.errors.items():
            self._raise(metrics.kafka_errors, count, error)

    def _raise(self, counter: Counter, count: int, label: str = "") -> None:
        before = self._counted.get((counter, label), 0)
        (counter.labels(label) if label else counter).inc(count - before)
        self._counted[counter, label] = count
