"""The edge's Prometheus metrics, summed over the workers that share the port.

Several workers store their metrics in files of `PROMETHEUS_MULTIPROC_DIR`, which the supervisor sets before
they start. The counters of dead workers remain in the sums. A single process keeps its metrics in memory.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from broker.process_metrics import set_build_info

MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"
OTHER: Final = "other"
_MAX_SDKS: Final = 100
_SECONDS: Final = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class BoundedLabel:
    """Bounds a label's cardinality: the first `limit` values are kept, all later ones become `other`."""

    def __init__(self, limit: int = _MAX_SDKS) -> None:
        self._limit = limit
        self._seen: set[str] = set()

    def __call__(self, value: str) -> str:
        """The value, or `other`."""
        if value in self._seen:
            return value
        if len(self._seen) < self._limit:
            self._seen.add(value)
            return value
        return OTHER

    def known(self, value: str) -> str:
        """The value if it was kept before, else `other`: unauthenticated clients must not use up the limit."""
        return value if value in self._seen else OTHER


class EdgeMetrics:
    """The edge's metrics; one instance per process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self.registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry, multiprocess_mode="livesum")
        greatest = partial(Gauge, registry=registry, multiprocess_mode="livemax")
        self.requests = counter(
            "svc_edge_requests", "Requests answered, by endpoint and status.", ["endpoint", "status"]
        )
        self.seconds = Histogram(
            "svc_edge_request_seconds",
            "Time from a request's head to its answer.",
            ["endpoint"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._events = counter(
            "svc_edge_events",
            "Events, or requests refused as a whole, by project, SDK, outcome and reason.",
            ["project", "sdk", "outcome", "reason"],
        )
        self.body_bytes = counter("svc_edge_body_bytes", "Decoded bytes of bodies that were read.")
        self.too_large = counter(
            "svc_edge_too_large_events",
            "Accepted events that are larger than the topic takes, each time a segment with them is quarantined.",
        )
        self.kafka_errors = counter(
            "svc_edge_kafka_errors",
            "Errors that kept Kafka from being written to, by their class.",
            ["error"],
        )
        self.connections = gauge("svc_edge_connections", "Open connections.")
        self.connections_ended = counter(
            "svc_edge_connections_ended",
            "Connections that the edge ended, by reason: address or total (their limits), slow head or long head.",
            ["reason"],
        )
        self.in_flight = gauge("svc_edge_requests_in_flight", "Requests being served.")
        self.waiting = gauge("svc_edge_waiting_events", "Accepted events that are not safe yet.")
        self.spool_bytes = gauge("svc_edge_spool_bytes", "Bytes in the disk spool.")
        self.quarantined_bytes = gauge(
            "svc_edge_spool_quarantined_bytes", "Bytes of segments that were quarantined and are still there."
        )
        self.undelivered = greatest(
            "svc_edge_undelivered_seconds",
            "Time for which something has waited in the spool and Kafka has acknowledged nothing.",
        )
        self.spool_age = greatest("svc_edge_spool_age_seconds", "Age of the oldest event in the disk spool.")
        self.kafka_up = Gauge(
            "svc_edge_kafka_up",
            "1 while Kafka acknowledges, in every worker.",
            multiprocess_mode="livemin",
            registry=registry,
        )
        build = Gauge(
            "svc_build_info",
            "Build information; always 1.",
            ["version", "python"],
            multiprocess_mode="max",
            registry=registry,
        )
        set_build_info(build)
        self._sdk = BoundedLabel()
        self._children: dict[tuple[str, str, str, str], Callable[[float], None]] = {}
        self._answers: dict[tuple[str, int], Callable[[], None]] = {}
        self._times: dict[str, Callable[[float], None]] = {}

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count and time a request; there are few endpoints and statuses."""
        count = self._answers.get((endpoint, status))
        if count is None:
            count = self._answers[endpoint, status] = self.requests.labels(endpoint, status).inc
            self._times.setdefault(endpoint, self.seconds.labels(endpoint).observe)
        count()
        self._times[endpoint](seconds)

    def malformed(self, status: int) -> None:
        self.requests.labels("malformed", status).inc()

    def count(self, project: str, sdk: str, outcome: str, reason: str, events: int = 1) -> None:
        """Count events of a project, "" if it is unknown, by SDK name."""
        name = sdk.rpartition("/")[0]
        name = self._sdk(name) if project else self._sdk.known(name)
        key = project, name, outcome, reason
        add = self._children.get(key)
        if add is None:
            add = self._children[key] = self._events.labels(*key).inc
        add(events)

    def page(self) -> bytes:
        """The metrics of all workers in Prometheus' text format."""
        directory = os.environ.get(MULTIPROCESS)
        if not directory:
            return generate_latest(self.registry)
        combined = CollectorRegistry()
        MultiProcessCollector(combined, path=directory)  # type: ignore[no-untyped-call]
        return generate_latest(combined)
