"""Claims the edge's listening address.

Workers share the address by SO_REUSEPORT, and the kernel would let any edge of the same user join. So an edge
claims its address before its first worker binds: decision docs/decisions/edge.md.
"""

import errno
import socket
import time
from typing import Final

PATIENCE_SECONDS: Final = 3.0
"""Time for the workers of a killed supervisor to close their sockets."""
_RETRY_SECONDS: Final = 0.1


def claim(host: str, port: int, patience: float) -> socket.socket:
    """Claim an address until the socket, which never listens, is closed; retries for `patience` seconds.

    Raises OSError, with EADDRINUSE if an overlapping address is claimed or in use.
    """
    end = time.monotonic() + patience
    while True:
        try:
            claimed = new_listener(host, port, shared=False)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if time.monotonic() > end:
                raise OSError(error.errno, "another process listens there, or is about to") from None
            time.sleep(_RETRY_SECONDS)
            continue
        # From now on sockets that share may bind, and no other claim: it is made without sharing.
        claimed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        claimed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return claimed


def new_listener(host: str, port: int, *, shared: bool) -> socket.socket:
    """A bound socket, with SO_REUSEPORT if `shared`. Raises OSError."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
