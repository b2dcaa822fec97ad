"""Limits of open connections.

Each connection takes a file descriptor and memory before more than its sender's address is known.
"""

import resource
from collections import Counter
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, Literal

Refused = Literal["address", "total"]

_OWN_DESCRIPTORS: Final = 256
"""Kept for Kafka, the spool, the rate limit and the metrics."""
_NETWORK_BITS: Final = 64
"""A sender that has one IPv6 address usually has its whole /64."""


class ConnectionLimits:
    """Counts open connections against a limit in total and one by sender.

    `most` limits all connections. `most_by_address` limits those of one sender: 0 means any number, and other
    values never allow more than half of all.
    """

    def __init__(self, most: int, most_by_address: int) -> None:
        self._most = most
        self._most_by_address = min(most_by_address, most // 2) or most
        self._by_sender: Counter[str] = Counter()
        self.total = 0

    def admit(self, sender: str) -> Refused | None:
        """Count a connection, or say which limit refuses it."""
        if self.total >= self._most:
            return "total"
        if self._by_sender[sender] >= self._most_by_address:
            return "address"
        self._by_sender[sender] += 1
        self.total += 1
        return None

    def release(self, sender: str) -> None:
        """A counted connection ended."""
        self.total -= 1
        self._by_sender[sender] -= 1
        if not self._by_sender[sender]:
            del self._by_sender[sender]


def affordable(wanted: int, descriptors: int) -> int:
    """The number of connections that a process with so many file descriptors may hold."""
    return min(wanted, max(descriptors - _OWN_DESCRIPTORS, descriptors // 2))


def descriptors() -> int:
    """How many file descriptors this process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@lru_cache(maxsize=4096)
def sender_of(address: str) -> str:
    """Who counts as one sender: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(IPv6Network((int(parsed) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))
    return str(parsed)
