"""Prometheus metrics: requests by route and status, their duration, and a few security counters."""

import time
from functools import partial

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from broker.process_metrics import add_process_metrics

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class DashboardMetrics:
    """Metrics of one application, in a separate registry: a process can hold several applications."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        add_process_metrics(self.registry)
        counter = partial(Counter, registry=self.registry)
        self.requests = counter(
            "svc_dashboard_requests", "Responses by route, method and status", ["route", "method", "status"]
        )
        self.seconds = Histogram(
            "svc_dashboard_request_seconds",
            "Request duration by route",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.damaged_payloads = counter(
            "svc_dashboard_damaged_payloads", "Requests for events whose stored payload is damaged"
        )
        self.refused_passwords = counter("svc_dashboard_refused_passwords", "Wrong passwords")
        self.refused_headers = counter(
            "svc_dashboard_refused_headers",
            "Requests whose headers claim a person and don't count",
            ["reason"],
        )
        self.throttled_passwords = counter(
            "svc_dashboard_throttled_passwords",
            "Sign-in attempts refused by the throttle without a password check",
        )

    def text(self) -> web.Response:
        return web.Response(
            body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )


def metrics_middleware(metrics: DashboardMetrics) -> Middleware:
    """A middleware that counts every response. Route labels are patterns, so their number is bounded."""

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
