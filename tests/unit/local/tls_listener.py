"""A listener that does a TLS handshake with a self-signed certificate and then sends nothing."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType

from tests.certificates import certificate


class TlsListener:
    """Listens on a free port of 127.0.0.1 while it is entered."""

    def __init__(self, folder: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate(folder))
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> "TlsListener":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._server.accept()
                with plain, contextlib.suppress(OSError):
                    plain.settimeout(5)
                    self._context.wrap_socket(plain, server_side=True).close()
