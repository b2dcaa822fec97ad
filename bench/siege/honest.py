"""The honest project: a steady open-loop load in a separate process, without retries: refusals count."""

import gzip
import json
from collections.abc import Sequence

from msgspec import Struct

from bench.chaos.chaos_load import Load
from bench.edge_load import LoadPlan, LoadResult, quantile, request, run_load
from bench.servers import headers

CONNECTIONS = 16


class Window(Struct, frozen=True):
    """A time window of the honest load: the delays in seconds, and the number of answers other than 202.

    `behind` is the seconds from its end until its last event can be queried, `pages` the delays of the dashboard's
    answers in it, infinite for one that is not 200.
    """

    delays: list[float]
    refused: dict[int, int]
    behind: float = 0.0
    pages: tuple[float, ...] = ()

    @property
    def p99(self) -> float:
        """The 99th percentile of the delays, in seconds."""
        return quantile(self.delays, 0.99)


def batches(load: Load, token: str, count: int, events: int) -> list[bytes]:
    """`count` requests of new events."""
    requests = []
    for _ in range(count):
        body = b'{"events":[' + b",".join(load.events(events)) + b"]}"
        requests.append(request("/v1/events:batch", gzip.compress(body, 1), headers(token, zipped=True)))
    return requests


def large(load: Load, token: str, size: int = 1_000_000) -> bytes:
    """A request with one uncompressed event of about a megabyte."""
    (line,) = load.events(1)
    event = json.loads(line)
    event["padding"] = "x" * (size - len(line))
    return request("/v1/events", json.dumps(event).encode(), headers(token))


def send(port: int, requests: Sequence[bytes], rate: float) -> Window:
    """Send each request once, `rate` per second."""
    result = run_load(port, requests, LoadPlan(len(requests) / rate, CONNECTIONS, rate))
    return window(result, len(requests))


def window(result: LoadResult, sent: int) -> Window:
    """The window of a run; a request without an answer counts as refused with status 0."""
    refused = {status: count for status, count in result.statuses.items() if status != 202}
    if result.answers < sent:
        refused[0] = sent - result.answers
    return Window(result.delays, refused)
