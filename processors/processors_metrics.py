"""The processors' Prometheus metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class ProcessorsMetrics:
    """One worker's metrics. Names begin with `svc_processors_`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"svc_processors_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"svc_processors_{name}", text, labels, registry=registry)

        self.events = counter("events", "Events read.")
        self.new = counter("events_new", "New events published.")
        self.duplicates = counter("events_duplicate", "Events dropped: their ids were seen before.")
        self.looked_up = counter("ids_looked_up", "Old ids looked up in ClickHouse before they were decided.")
        self.look_up_seconds = counter(
            "look_up_seconds", "Time spent waiting for ClickHouse to find old ids."
        )
        self.dead = counter("dead_letters", "Records dead-lettered.", "stage")
        self.records = counter("records", "Records processed.", "stage")
        self.forwarded_again = counter("records_forwarded_again", "Records replayed after a start.")
        self.increments = counter("increments", "Increments folded into issues.")
        self.issues_written = counter("issues_written", "Issue states written.")
        self.lag = gauge("lag_records", "Records not processed yet.", "topic", "partition")
        self.ids = gauge("seen_ids", "Ids in the index.", "partition")
        self.rules_skipped = counter(
            "rules_skipped",
            "Times that a grouping rule was skipped on an event: it was too expensive, or failed.",
            "project",
        )
        self.recovering = gauge("recovering", "1 while tables are recovered.")
        self.age = Histogram(
            "svc_processors_event_age_seconds",
            "From receipt to publishing, of the oldest event of a batch.",
            buckets=(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15, 60, 300, 3600),
            registry=registry,
        )

    def forget(self, partition: int, *topics: str) -> None:
        """Reset the gauges of a partition of these source topics: it moved to another worker."""
        label = str(partition)
        self.ids.labels(label).set(0)
        for topic in topics:
            self.lag.labels(topic, label).set(0)
