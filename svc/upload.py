"""One kept-alive connection to the ingest address, over which batches go and answers come back."""

import contextlib
import gzip
import http.client
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from svc.answers import MAX_ANSWER_BYTES, Answer, understand

_WORTH_ZIPPING: Final = 1_024
_LEVEL: Final = 5
_PATH: Final = "/v1/events:batch"


class Response(Protocol):
    """What is used of `http.client.HTTPResponse`."""

    status: int
    headers: http.client.HTTPMessage
    will_close: bool

    def read(self, amount: int) -> bytes: ...  # noqa: D102


class Connection(Protocol):
    """What is used of `http.client.HTTPConnection`."""

    timeout: float | None

    def request(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> None: ...  # noqa: D102
    def getresponse(self) -> Response: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class SilentHttp(http.client.HTTPConnection):
    """A connection of the library's own, which leaves no breadcrumb."""

    svc_silent = True


class SilentHttps(http.client.HTTPSConnection):
    """The same over TLS, checked against the system's authorities (or those named by SSL_CERT_FILE)."""

    svc_silent = True


def connect(url: str, timeout: float) -> Connection:
    """A connection to the host of `url`, not opened yet."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        return SilentHttps(host, parts.port, timeout=timeout, context=ssl.create_default_context())
    return SilentHttp(host, parts.port, timeout=timeout)


def _was_closed(connection: Connection) -> bool:
    """Whether the server has hung up on a kept connection: between requests it has nothing else to say."""
    opened: socket.socket | None = getattr(connection, "sock", None)
    if opened is None:
        return False
    with selectors.DefaultSelector() as waiting:
        waiting.register(opened, selectors.EVENT_READ)
        return bool(waiting.select(0))


class Uploader:
    """Posts batches, one at a time; `post` never raises for anything that network or server do."""

    def __init__(
        self,
        url: str,
        token: str,
        sdk: str,
        timeout: float = 10.0,
        connect: Callable[[str, float], Connection] = connect,
    ) -> None:
        self._url = url
        self._path = urlsplit(url).path.rstrip("/") + _PATH
        self._timeout = timeout
        self._connect = connect
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Svc-Sdk": sdk,
            "Content-Type": "application/json",
        }

    def post(self, events: Sequence[bytes], timeout: float | None = None) -> Answer:
        """Send encoded events as one batch and wait for its answer; silence, errors and garbage are `status` 0."""
        body = b'{"events":[' + b",".join(events) + b"]}"
        headers = self._headers
        if len(body) >= _WORTH_ZIPPING:
            body = gzip.compress(body, _LEVEL, mtime=0)
            headers = {**headers, "Content-Encoding": "gzip"}
        with self._lock:
            try:
                return self._exchange(body, headers, len(events), timeout)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._drop()
                return Answer(0, why=repr(error))

    def _exchange(self, body: bytes, headers: dict[str, str], sent: int, timeout: float | None) -> Answer:
        allowed = self._timeout if timeout is None else min(timeout, self._timeout)
        if self._connection is None or _was_closed(self._connection):
            self._drop()
            self._connection = self._connect(self._url, allowed)
        connection = self._connection
        connection.timeout = allowed
        if (opened := getattr(connection, "sock", None)) is not None:
            opened.settimeout(allowed)
        connection.request("POST", self._path, body, headers)
        response = connection.getresponse()
        content = response.read(MAX_ANSWER_BYTES)
        answer = understand(response.status, response.headers, content, sent)  # type: ignore[arg-type]
        if response.will_close or answer.status == 0 or len(content) == MAX_ANSWER_BYTES:
            self._drop()
        return answer

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()

    def close(self) -> None:
        """Close the kept connection; a later `post` opens another."""
        with self._lock:
            self._drop()

    def forget(self) -> None:
        """In a forked child: the parent's connection is not ours to speak on, nor its lock ours to wait for.

        Closing ends the child's copy alone; nothing is sent.
        """
        self._lock = threading.Lock()
        self._drop()
