"""The honest project: a steady load, open loop, in a process of its own; each request is sent once, so that a refusal is seen."""

import gzip
import json
from collections.abc import Sequence

from msgspec import Struct

from bench.chaos.load import Load
from bench.edge_load import LoadResult, request, run_load

CONNECTIONS = 16


class Window(Struct, frozen=True):
    """One stretch of the honest load: its answers' delays in seconds, and how many of them were no 202."""

    delays: list[float]
    refused: dict[int, int]

    @property
    def p99(self) -> float:
        """The delay, in seconds, that one request in a hundred exceeds."""
        ordered = sorted(self.delays)
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def batches(load: Load, token: str, count: int, events: int) -> list[bytes]:
    """So many ready requests of so many fresh events."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Svc-Sdk": "honest/1",
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
    }
    made = []
    for _ in range(count):
        body = b'{"events":[' + b",".join(load.events(events)) + b"]}"
        made.append(request("/v1/events:batch", gzip.compress(body, 1), headers))
    return made


def large(load: Load, token: str, size: int = 1_000_000) -> bytes:
    """A request with one event of about a megabyte, not compressed."""
    (line,) = load.events(1)
    event = json.loads(line)
    event["padding"] = "x" * (size - len(line))
    headers = {"Authorization": f"Bearer {token}", "Svc-Sdk": "honest/1", "Content-Type": "application/json"}
    return request("/v1/events", json.dumps(event).encode(), headers)


def send(port: int, requests: Sequence[bytes], rate: float) -> Window:
    """Send each request once, `rate` a second."""
    result = run_load(port, requests, len(requests) / rate, CONNECTIONS, rate)
    return window(result, len(requests))


def window(result: LoadResult, sent: int) -> Window:
    """What came of a run; a request without an answer counts as refused with status 0."""
    refused = {status: count for status, count in result.statuses.items() if status != 202}
    if result.answers < sent:
        refused[0] = sent - result.answers
    return Window(result.delays, refused)
