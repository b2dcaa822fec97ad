"""Who may listen where. Workers of one edge share a port by SO_REUSEPORT; the kernel would let any edge of the same user share it.

So an edge claims its address before its first worker binds. A claim is a name in the kernel's table of abstract sockets, which is as
wide as the ports are, a network namespace, whatever the user or the data directory; it goes when the process ends, however that is.
"""

import errno
import random
import socket
import sys
import time
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

PATIENCE_SECONDS: Final = 3.0
"""For the workers of a supervisor that was killed, which close their sockets by themselves."""
_LOOK_SECONDS: Final = 0.1
_NAMES: Final = Path("/proc/net/unix")
_TAKEN: Final = "another process listens there, or is about to"

Address = IPv4Address | IPv6Address


def claim(host: str, port: int, patience: float) -> socket.socket:
    """Take an address for this process until the socket is closed; asked again for `patience` seconds.

    Raises OSError, with EADDRINUSE where an address that overlaps is claimed or listened on, a wildcard overlapping all of its port.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return _claimed(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise
        # Two that claim at once both give way: not again at the same time.
        time.sleep(_LOOK_SECONDS * (0.5 + random.random()))  # noqa: S311 - spread, not secrecy


def new_listener(host: str, port: int, *, shared: bool) -> socket.socket:
    """A bound socket; `shared` with others of the same user that want it too. Raises OSError."""
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


def _claimed(host: str, port: int) -> socket.socket:
    # Bound alone, it can't be had beside anyone who listens, also one who claims nothing.
    with new_listener(host, port, shared=False) as probe:
        ours = _plain(probe.getsockname()[0])
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if sys.platform != "linux" or port == 0:
        return held
    try:
        held.bind(f"\0{_name(port)}{ours}")
    except PermissionError:
        # A sandbox without such sockets: who listens is still found.
        return held
    except OSError as error:
        held.close()
        raise OSError(error.errno, _TAKEN) from None
    # Named first, then looked: of two that come at once, at least one sees the other.
    if any(_overlap(ours, other) for other in _others(port) if other != ours):
        held.close()
        raise OSError(errno.EADDRINUSE, _TAKEN)
    return held


def _name(port: int) -> str:
    return f"svc-edge/{port}/"


def _others(port: int) -> list[Address]:
    """The addresses of this port that are claimed in this network namespace."""
    prefix = "@" + _name(port)
    found = []
    for line in _NAMES.read_text(encoding="utf-8", errors="replace").splitlines():
        _, _, name = line.rpartition(" ")
        if name.startswith(prefix):
            # Any program may choose such a name.
            with suppress(ValueError):
                found.append(_plain(name.removeprefix(prefix)))
    return found


def _plain(text: str) -> Address:
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _overlap(one: Address, other: Address) -> bool:
    """Whether both would answer at some address; a socket of `::` takes IPv4 too."""
    return one == other or one.is_unspecified or other.is_unspecified
