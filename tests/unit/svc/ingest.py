"""A real server on 127.0.0.1 with scripted answers that records requests."""

import gzip
import http.server
import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """A request as it came, its body inflated."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of the batch."""
        events: list[dict[str, Any]] = json.loads(self.body)["events"]
        return events


@dataclass
class Ingest:
    """`answers` are used up one a request; without any left every event is accepted."""

    url: str = ""
    answers: deque["Reply"] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events of all requests."""
        return [event for request in self.requests for event in request.events]


@dataclass(frozen=True)
class Reply:
    """An answer; `raw` is sent instead of HTTP, and an empty `raw` closes the connection without a word."""

    status: int = 202
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


def accepted(events: int) -> dict[str, Any]:
    """The body of a batch of which nothing is rejected."""
    return {"accepted": events, "rejected": 0, "errors": []}


def _handler(ingest: Ingest) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            ingest.connections += 1

        def do_GET(self) -> None:
            self._answer(200, b"{}", {})

        def do_OPTIONS(self) -> None:
            self._answer(
                204, b"", {"Access-Control-Allow-Headers": self.headers["Access-Control-Request-Headers"]}
            )

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            ingest.requests.append(request)
            reply = ingest.answers.popleft() if ingest.answers else Reply(body=accepted(len(request.events)))
            if reply.raw is not None:
                self.wfile.write(reply.raw)
                self.wfile.flush()
                self.close_connection = True
                return
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self._answer(reply.status, content, reply.headers)

        def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@contextmanager
def ingest_server() -> Iterator[Ingest]:
    """A running server; it is stopped at the end."""
    ingest = Ingest()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(ingest))
    server.daemon_threads = True
    ingest.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield ingest
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
