"""Metrics of `svc notify`."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge


class NotifyMetrics:
    """Counters and gauges, registered in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.causes = counter("svc_notify_causes", "Causes that were recorded.")
        self.decisions = counter(
            "svc_notify_messages", "Notifications produced by rules, including failed deliveries."
        )
        self.attempts = counter(
            "svc_notify_attempts", "Attempts to send, by channel and outcome.", ["channel", "outcome"]
        )
        self.outgoing = gauge("svc_notify_outgoing", "Messages that are not delivered yet.")
        self.given_up = counter("svc_notify_given_up", "Messages that were given up.")
