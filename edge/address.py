"""Claims the edge's listening address. Workers share it by SO_REUSEPORT, and the kernel would let any edge of the same user join.

So an edge claims its address before its first worker binds. A claim is a name of an abstract socket: it covers a network
namespace, as ports do, whatever the user or the data directory, and it is released when the process ends in any way.
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
"""Time for the workers of a killed supervisor to close their sockets."""
_RETRY_SECONDS: Final = 0.1
_NAMES: Final = Path("/proc/net/unix")
_IN_USE: Final = "another process listens there, or is about to"

Address = IPv4Address | IPv6Address


def claim(host: str, port: int, patience: float) -> socket.socket:
    """Claim an address until the socket is closed; retries for `patience` seconds.

    Raises OSError, with EADDRINUSE if an overlapping address is claimed or in use. A wildcard overlaps every address of its port.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return _claim_once(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise
        # Two simultaneous claims both fail: retry at different times.
        time.sleep(_RETRY_SECONDS * (0.5 + random.random()))  # noqa: S311 - spread, not secrecy


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


def _claim_once(host: str, port: int) -> socket.socket:
    # A bind without SO_REUSEPORT fails if anyone listens, with or without a claim.
    with new_listener(host, port, shared=False) as probe:
        address = parse(probe.getsockname()[0])
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if sys.platform != "linux" or port == 0:
        return claimed
    try:
        claimed.bind(f"\0{_name(port)}{address}")
    except PermissionError:
        # A sandbox without abstract sockets: the bind above still detects listeners.
        return claimed
    except OSError as error:
        claimed.close()
        raise OSError(error.errno, _IN_USE) from None
    # Claim before checking: of two simultaneous claims, at least one sees the other.
    if any(_overlap(address, other) for other in _claimed_addresses(port) if other != address):
        claimed.close()
        raise OSError(errno.EADDRINUSE, _IN_USE)
    return claimed


def _name(port: int) -> str:
    return f"svc-edge/{port}/"


def _claimed_addresses(port: int) -> list[Address]:
    """The claimed addresses of a port in this network namespace."""
    prefix = "@" + _name(port)
    addresses = []
    for line in _NAMES.read_text(encoding="utf-8", errors="replace").splitlines():
        _, _, name = line.rpartition(" ")
        if name.startswith(prefix):
            # Any program may use such a name.
            with suppress(ValueError):
                addresses.append(parse(name.removeprefix(prefix)))
    return addresses


def parse(text: str) -> Address:
    """An address; an IPv4 address mapped into IPv6 becomes IPv4. Raises ValueError."""
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _overlap(first: Address, second: Address) -> bool:
    """Whether both include a common address; `::` includes IPv4."""
    return first == second or first.is_unspecified or second.is_unspecified
