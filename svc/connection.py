"""HTTP connections with one deadline for a whole exchange.

A socket's timeout applies to each read, so a server that sends single bytes could hold a request open indefinitely.
"""

import contextlib
import http.client
import selectors
import socket
import ssl
import time
from typing import Any, Final
from urllib.parse import urlsplit

_NO_TIME: Final = "the exchange exceeded its deadline"


def _seconds_until(deadline: float) -> float:
    """Seconds until this moment of `time.monotonic`. Raises TimeoutError."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(_NO_TIME)
    return left


class DeadlineSocket(socket.socket):
    """A socket whose reads and writes share one `deadline`."""

    deadline = 0.0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """The only read method that `http.client` uses."""
        self.settimeout(_seconds_until(self.deadline))
        return super().recv_into(*args, **kwargs)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """The only write method that `http.client` uses. TLS's own `sendall` gives each part the full timeout."""
        with memoryview(data) as view:
            sent = 0
            while sent < len(view):
                self.settimeout(_seconds_until(self.deadline))
                sent += self.send(view[sent:], flags)


class DeadlineTlsSocket(DeadlineSocket, ssl.SSLSocket):
    """The same over TLS."""


def _connected(host: str, port: int, deadline: float) -> DeadlineSocket:
    """A socket to the first address of the host that answers; untried addresses share the remaining time."""
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
    """A connection opened by its first request; the network hook records no breadcrumbs for it."""

    svc_silent = True
    deadline = 0.0

    def connect(self) -> None:
        """Open it. Raises OSError."""
        self.sock = _connected(self.host, self.port, self.deadline)

    def allow(self, seconds: float) -> None:
        """Limit the next exchange, connecting included, to this many seconds."""
        self.deadline = time.monotonic() + seconds
        if isinstance(self.sock, DeadlineSocket):
            self.sock.deadline = self.deadline

    def was_closed(self) -> bool:
        """Whether the server closed an idle connection: between requests only end-of-file can be readable."""
        if self.sock is None:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            return bool(selector.select(0))


class TlsConnection(Connection):
    """The same over TLS, verified against the system's CA certificates (or those in SSL_CERT_FILE)."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        """Open it and do the TLS handshake. Raises OSError (ssl.SSLError is a subclass)."""
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
    """An unopened connection to the host of `url`."""
    parts = urlsplit(url)
    kind = TlsConnection if parts.scheme == "https" else Connection
    return kind(parts.hostname or "", parts.port or kind.default_port)
