"""The writer's Prometheus metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_AGES = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 3600)
_ROWS = (1, 10, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)


class WriterMetrics:
    """All metrics of the writer, by the name of the attribute."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.rows = Counter("svc_writer_rows", "Rows inserted.", ["table"], registry=registry)
        self.block_rows = Histogram(
            "svc_writer_block_rows", "Rows of a block.", ["table"], buckets=_ROWS, registry=registry
        )
        self.insert_seconds = Histogram(
            "svc_writer_insert_seconds",
            "Duration of an insert.",
            ["table"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.event_age_seconds = Histogram(
            "svc_writer_event_age_seconds",
            "From an event's receipt at the edge until it can be queried: the oldest of each block.",
            buckets=_AGES,
            registry=registry,
        )
        self.failures = Counter(
            "svc_writer_insert_failures",
            "Inserts that failed, by reason.",
            ["table", "reason"],
            registry=registry,
        )
        self.waiting = Gauge(
            "svc_writer_waiting", "1 while an insert waits for ClickHouse.", ["table"], registry=registry
        )
        self.repaired_rows = Counter(
            "svc_writer_repaired_rows",
            "Rows repaired after an insert, by table.",
            ["table"],
            registry=registry,
        )
        self.dead_letters = Counter(
            "svc_writer_dead_letters", "Records and events dead-lettered.", ["topic"], registry=registry
        )
        self.lag = Gauge(
            "svc_writer_lag_records", "Records not written yet.", ["topic", "partition"], registry=registry
        )
        self.broken_parts = Gauge(
            "svc_writer_broken_parts",
            "Parts that ClickHouse has detached as broken: rows may be missing, run `svc reconcile --repair`.",
            registry=registry,
        )
        self.audits = Counter(
            "svc_writer_audits",
            "Audits by result: equal, different, behind (nothing was compared), failed.",
            ["result"],
            registry=registry,
        )
        self.audit_difference = Gauge(
            "svc_writer_audit_difference_events",
            "Events that a table lacks (missing) or has too many (surplus), found by two audits in a row:"
            " run `svc reconcile`.",
            ["kind", "what"],
            registry=registry,
        )
        self.audit_differing = Gauge(
            "svc_writer_audit_differing_hours",
            "Pairs of project and hour in which accepted, stored or counted events differ.",
            registry=registry,
        )
        self.audit_lost_issues = Gauge(
            "svc_writer_audit_lost_issues",
            "Fingerprints that have events of the last day and no issue: run `svc reconcile --repair`.",
            registry=registry,
        )
        self.audit_at = Gauge(
            "svc_writer_audit_timestamp_seconds",
            "When the last audit began that compared anything; 0 where another writer audits.",
            registry=registry,
        )
        self.audit_until = Gauge(
            "svc_writer_audit_settled_timestamp_seconds",
            "Events received before this time were compared by the last audit.",
            registry=registry,
        )

    def forget_audit(self) -> None:
        """Show no audit: another writer audits."""
        self.audit_difference.clear()
        for gauge in (self.audit_differing, self.audit_lost_issues, self.audit_at, self.audit_until):
            gauge.set(0)
