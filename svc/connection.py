"""A connection of the library's own, all of whose exchange ends by one moment, however slowly the server drips.

The time-out of a socket bounds each read, and a server that sends a byte before each of them never lets it pass.
"""

import contextlib
import http.client
import selectors
import socket
import ssl
import time
from typing import Any, Final
from urllib.parse import urlsplit

_NO_TIME: Final = "the exchange took longer than it may"


def _seconds_until(deadline: float) -> float:
    """Seconds until this moment of `time.monotonic`. Raises TimeoutError."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(_NO_TIME)
    return left


class DeadlineSocket(socket.socket):
    """Each read and write may take what is left until `deadline`."""

    deadline = 0.0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """All that `http.client` reads, it reads by this."""
        self.settimeout(_seconds_until(self.deadline))
        return super().recv_into(*args, **kwargs)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """All that `http.client` writes. The sendall of TLS gives each of its parts the whole time."""
        with memoryview(data) as view:
            sent = 0
            while sent < len(view):
                self.settimeout(_seconds_until(self.deadline))
                sent += self.send(view[sent:], flags)


class DeadlineTlsSocket(DeadlineSocket, ssl.SSLSocket):
    """The same over TLS."""


def _connected(host: str, port: int, deadline: float) -> DeadlineSocket:
    """Connected to the first address of the host that answers; those that remain share the time that is left."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = OSError(f"{host} has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        opened = DeadlineSocket(family, kind, protocol)
        opened.deadline = deadline
        try:
            opened.settimeout(_seconds_until(deadline) / (len(addresses) - tried))
            opened.connect(address)
        except OSError as error:
            opened.close()
            failure = error
        else:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return opened
    raise failure


class Connection(http.client.HTTPConnection):
    """To one server, opened by the first request; it leaves no breadcrumb."""

    svc_silent = True
    deadline = 0.0

    def connect(self) -> None:
        """Open it. Raises OSError."""
        self.sock = _connected(self.host, self.port, self.deadline)

    def allow(self, seconds: float) -> None:
        """All of the next exchange, with what it takes to connect, takes at most this long."""
        self.deadline = time.monotonic() + seconds
        if isinstance(self.sock, DeadlineSocket):
            self.sock.deadline = self.deadline

    def was_closed(self) -> bool:
        """Whether the server has hung up on a kept connection: between requests it has nothing else to say."""
        if self.sock is None:
            return False
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.sock, selectors.EVENT_READ)
            return bool(waiting.select(0))


class TlsConnection(Connection):
    """The same over TLS, checked against the system's authorities (or those named by SSL_CERT_FILE)."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        """Open it and shake hands. Raises OSError, of which ssl.SSLError is one."""
        context = ssl.create_default_context()
        context.sslsocket_class = DeadlineTlsSocket
        plain = _connected(self.host, self.port, self.deadline)
        try:
            plain.settimeout(_seconds_until(self.deadline))
            secured = context.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            with contextlib.suppress(OSError):
                plain.close()
            raise
        assert isinstance(secured, DeadlineTlsSocket)
        secured.deadline = self.deadline
        self.sock = secured


def connection_to(url: str) -> Connection:
    """A connection to the host of `url`, not opened yet."""
    parts = urlsplit(url)
    kind = TlsConnection if parts.scheme == "https" else Connection
    return kind(parts.hostname or "", parts.port or kind.default_port)
