"""The writer's Prometheus metrics."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_AGES = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 3600)
_ROWS = (1, 10, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)


class WriterMetrics:
    """All metrics of the writer, by the name of the attribute."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.rows = counter("svc_writer_rows", "Rows inserted.", ["table"])
        self.block_rows = histogram("svc_writer_block_rows", "Rows of a block.", ["table"], buckets=_ROWS)
        self.insert_seconds = histogram(
            "svc_writer_insert_seconds", "Duration of an insert.", ["table"], buckets=_SECONDS
        )
        self.event_age_seconds = histogram(
            "svc_writer_event_age_seconds",
            "From an event's receipt at the edge until it can be queried: the oldest of each block.",
            buckets=_AGES,
        )
        self.failures = counter(
            "svc_writer_insert_failures", "Inserts that failed, by reason.", ["table", "reason"]
        )
        self.waiting = gauge("svc_writer_waiting", "1 while an insert waits for ClickHouse.", ["table"])
        self.repaired_rows = counter(
            "svc_writer_repaired_rows", "Rows repaired after an insert, by table.", ["table"]
        )
        self.dead_letters = counter("svc_writer_dead_letters", "Records and events dead-lettered.", ["topic"])
        self.lag = gauge("svc_writer_lag_records", "Records not written yet.", ["topic", "partition"])
        self.broken_parts = gauge(
            "svc_writer_broken_parts",
            "Parts that ClickHouse has detached as broken: rows may be missing, run `svc reconcile --repair`.",
        )
        self.audits = counter(
            "svc_writer_audits",
            "Audits by result: equal, different, behind (nothing was compared), failed.",
            ["result"],
        )
        self.audit_difference = gauge(
            "svc_writer_audit_difference_events",
            "Events that a table lacks (missing) or has too many (surplus), found by two audits in a row:"
            " run `svc reconcile`.",
            ["kind", "what"],
        )
        self.audit_differing = gauge(
            "svc_writer_audit_differing_hours",
            "Pairs of project and hour in which accepted, stored or counted events differ.",
        )
        self.audit_lost_issues = gauge(
            "svc_writer_audit_lost_issues",
            "Fingerprints that have events of the last day and no issue: run `svc reconcile --repair`.",
        )
        self.audit_at = gauge(
            "svc_writer_audit_timestamp_seconds",
            "When the last audit began that compared anything; 0 where another writer audits.",
        )
        self.audit_until = gauge(
            "svc_writer_audit_settled_timestamp_seconds",
            "Events received before this time were compared by the last audit.",
        )

    def forget_audit(self) -> None:
        """Show no audit: another writer audits."""
        self.audit_difference.clear()
        for gauge in (self.audit_differing, self.audit_lost_issues, self.audit_at, self.audit_until):
            gauge.set(0)
