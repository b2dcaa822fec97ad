"""Metrics of `svc notify`."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class NotifyMetrics:
    """Counters and gauges, registered in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.causes = Counter("svc_notify_causes", "Causes that were recorded.", registry=registry)
        self.decisions = Counter(
            "svc_notify_messages",
            "Notifications produced by rules, including failed deliveries.",
            registry=registry,
        )
        self.attempts = Counter(
            "svc_notify_attempts",
            "Attempts to send, by channel and outcome.",
            ["channel", "outcome"],
            registry=registry,
        )
        self.outgoing = Gauge(
            "svc_notify_outgoing", "Messages that are not delivered yet.", registry=registry
        )
        self.given_up = Counter("svc_notify_given_up", "Messages that were given up.", registry=registry)
