"""An exchange ends by its deadline against any server, and goes to the configured address."""

import contextlib
import itertools
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svc.answers import MAX_ANSWER_BYTES, Answer
from svc.connection import Connection
from svc.upload import Uploader
from tests.certificates import certificate
from tests.unit.svc.ingest import Ingest, Reply

EVENT = json.dumps({"id": "x"}).encode()
DRIPS = 400
"""Of 20 ms: much longer than the time-outs of these tests, and still an end where something waits for all of them."""


class Dripping:
    """A server that says `parts` at 20 ms each to each client. `ended`: all were sent, so the client didn't hang up."""

    def __init__(
        self, parts: Iterable[bytes], context: ssl.SSLContext | None = None, reads: bool = True
    ) -> None:
        self.ended = False
        self._parts = parts
        self._context = context
        self._reads = reads
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._closed = threading.Event()
        scheme = "https" if context else "http"
        self.url = f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            opened, _ = self._listening.accept()
            with self._context.wrap_socket(opened, server_side=True) if self._context else opened as client:
                request = b""
                # To the body's end: a server that hangs up before it has read everything resets the connection.
                while self._reads and not request.endswith(b"]}") and (part := client.recv(65_536)):
                    request += part
                for part in itertools.islice(self._parts, DRIPS):
                    if part:
                        client.sendall(part)
                    if self._closed.wait(0.02):
                        return
                self.ended = True

    def close(self) -> None:
        self._closed.set()
        self._listening.close()
        self._thread.join(10)


def drip(before: bytes, each: bytes) -> Iterator[bytes]:
    yield before
    yield from itertools.repeat(each)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side of TLS for 127.0.0.1, which the system trusts."""
    file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


DRIPPED: dict[str, Callable[[], Iterator[bytes]]] = {
    "nothing": lambda: drip(b"", b""),
    "a status": lambda: drip(b"HTTP/1.1 202", b" "),
    "headers": lambda: drip(b"HTTP/1.1 202 Accepted\r\nX: ", b"x"),
    "further headers": lambda: drip(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": lambda: drip(b"HTTP/1.1 202 Accepted\r\nContent-Length: 9000\r\n\r\n", b" "),
    "a body without a length": lambda: drip(b"HTTP/1.0 202 Accepted\r\n\r\n", b" "),
    "chunks": lambda: drip(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize("what", DRIPPED)
def test_server_that_drips_is_no_answer_after_the_timeout(what: str) -> None:
    with (
        closing(Dripping(DRIPPED[what]())) as server,
        closing(Uploader(server.url, "t", "s", 0.2)) as uploader,
    ):
        answer = uploader.post([EVENT])
        assert answer.status == 0
        assert "Timeout" in answer.why or "longer" in answer.why
        assert not server.ended


def test_server_that_drips_over_tls_is_no_answer_after_the_timeout(authority: ssl.SSLContext) -> None:
    with (
        closing(Dripping(DRIPPED["headers"](), authority)) as server,
        closing(Uploader(server.url, "t", "s", 0.5)) as uploader,
    ):
        assert uploader.post([EVENT]).status == 0
        assert not server.ended


def test_server_that_never_shakes_hands_is_no_answer_after_the_timeout(authority: ssl.SSLContext) -> None:
    with closing(Dripping(drip(b"\x16\x03\x03\x40\x00", b"\x02"), reads=False)) as server:
        url = server.url.replace("http:", "https:")
        with closing(Uploader(url, "t", "s", 0.2)) as uploader:
            assert uploader.post([EVENT]).status == 0
            assert not server.ended


def test_server_that_reads_nothing_is_no_answer_after_the_timeout() -> None:
    body = os.urandom(8 << 20)
    with (
        closing(Dripping(drip(b"", b""), reads=False)) as server,
        closing(Uploader(server.url, "t", "s", 0.3)) as uploader,
    ):
        assert uploader.post([body]).status == 0
        assert not server.ended


def test_answer_over_tls_is_understood(authority: ssl.SSLContext) -> None:
    accepted = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"
    with (
        closing(Dripping([accepted], authority)) as server,
        closing(Uploader(server.url, "t", "s", 10)) as uploader,
    ):
        assert uploader.post([EVENT]) == Answer(202, accepted=1)


def test_server_without_a_trusted_certificate_is_no_answer(
    authority: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with (
        closing(Dripping([b""], authority)) as server,
        closing(Uploader(server.url, "t", "s", 10)) as uploader,
    ):
        assert "CERTIFICATE_VERIFY_FAILED" in uploader.post([EVENT]).why


def test_timeout_is_of_each_exchange_and_not_of_the_connection(ingest: Ingest) -> None:
    with closing(Uploader(ingest.url, "t", "s", 5)) as uploader:
        assert uploader.post([EVENT]).status == 202
        assert isinstance(uploader._connection, Connection)
        uploader._connection.allow(0)
        assert uploader.post([EVENT]).status == 202
    assert ingest.connections == 1


def test_answer_without_an_end_is_read_so_far_and_no_further() -> None:
    read: list[int] = []

    def parts() -> Iterator[bytes]:
        yield b"HTTP/1.1 202 Accepted\r\nContent-Length: 1073741824\r\n\r\n"
        for _ in range(64):
            read.append(1 << 20)
            yield b" " * (1 << 20)

    with closing(Dripping(parts())) as server, closing(Uploader(server.url, "t", "s", 30)) as uploader:
        assert uploader.post([EVENT]) == Answer(0, why="202 without a JSON object")
        assert uploader._connection is None
    assert sum(read) < MAX_ANSWER_BYTES + (12 << 20)


def test_redirect_is_not_followed(ingest: Ingest) -> None:
    ingest.answers.append(Reply(307, {}, {"Location": ingest.url + "/elsewhere"}))
    with closing(Uploader(ingest.url, "t", "s")) as uploader:
        assert uploader.post([EVENT]) == Answer(0, why="status 307")
    assert [request.path for request in ingest.requests] == ["/v1/events:batch"]


def test_proxy_of_the_environment_is_not_used(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with closing(Uploader(ingest.url, "t", "s")) as uploader:
        assert uploader.post([EVENT]).status == 202


def test_address_that_does_not_answer_leaves_time_for_the_next(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(ingest.url.rpartition(":")[2])
    with socket.socket() as full:
        # No accept() here, and the second connection has no place in the queue: connecting takes for ever.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.create_connection(full.getsockname()), socket.socket() as waiting:
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
            found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())]
            found += [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
            with closing(Uploader("http://two.example", "t", "s", 1.0)) as uploader:
                assert uploader.post([EVENT]).status == 202
