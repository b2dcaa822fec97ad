"""What Prometheus may ask the dashboard: requests by route and status, and how long they took."""

import time

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class DashboardMetrics:
    """Counters of one application, in a registry of their own: several applications fit in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "svc_dashboard_requests",
            "Answers by route, method and status",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "svc_dashboard_request_seconds",
            "Time to answer by route",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.damaged_payloads = Counter(
            "svc_dashboard_damaged_payloads",
            "Events asked for whose stored content can't be read",
            registry=self.registry,
        )
        self.shared_answers = Counter(
            "svc_dashboard_shared_answers",
            "Calls answered with what an equal call has just got",
            registry=self.registry,
        )
        self.refused_passwords = Counter(
            "svc_dashboard_refused_passwords", "Wrong passwords", registry=self.registry
        )
        self.throttled_passwords = Counter(
            "svc_dashboard_throttled_passwords",
            "Passwords that were not looked at: their address had tried too many",
            registry=self.registry,
        )

    def text(self) -> web.Response:
        """The exposition."""
        return web.Response(
            body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )


def counting(metrics: DashboardMetrics) -> Middleware:
    """A middleware that counts every answer. Routes are patterns, so their number is bounded."""

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        response = await handler(request)
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else "none"
        method = (
            request.method if request.method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} else "other"
        )
        metrics.requests.labels(route, method, str(response.status)).inc()
        metrics.seconds.labels(route).observe(time.perf_counter() - started)
        return response

    return count
