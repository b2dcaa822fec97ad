"""A load balancer on 127.0.0.1: each connection is passed to the next of some servers, with TLS in front if wanted."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from itertools import cycle


@contextlib.contextmanager
def forwarding(ports: Sequence[int], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a balancer over the servers on these ports."""
    targets = cycle(ports)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    threading.Thread(
                        target=_connect, args=(client, next(targets), context), daemon=True
                    ).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _connect(client: socket.socket, port: int, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), client:
        near = context.wrap_socket(client, server_side=True) if context else client
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            back = threading.Thread(target=_pump, args=(far, near), daemon=True)
            back.start()
            _pump(near, far)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
