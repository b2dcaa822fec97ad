"""The client's address: the peer of the connection, or the one in `X-Forwarded-For` of trusted proxies."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from schemas.errors import BadSetting

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]
_NETWORK_BITS: Final = 64
"""A client that has one IPv6 address usually has its whole /64."""


def parse_networks(text: str) -> Networks:
    """Addresses and networks, separated by commas. Raises BadSetting."""
    try:
        return tuple([ip_network(part.strip()) for part in text.split(",") if part.strip()])
    except ValueError as error:
        raise BadSetting(
            "SVC_DASHBOARD_TRUSTED_PROXIES must be addresses or networks such as 10.0.0.0/8, "
            f"separated by commas: {error}"
        ) from None


def client_address(peer: str, forwarded: Sequence[str], trusted: Networks) -> str:
    """The rightmost address that isn't a trusted proxy; `forwarded` holds the `X-Forwarded-For` headers in order.

    The client controls everything left of it. A hop that isn't an address ends the search.
    """
    client = _address(peer)
    if client is None:
        return peer
    for hop in reversed([hop for value in forwarded for hop in value.split(",")]):
        address = _address(hop)
        if not is_trusted(client, trusted) or address is None:
            break
        client = address
    return str(client)


def is_trusted(address: Address | None, trusted: Networks) -> bool:
    """Whether the address belongs to a trusted proxy."""
    return address is not None and any(address in network for network in trusted)


def is_from_trusted(peer: str, trusted: Networks) -> bool:
    """Whether the connection comes from a trusted proxy, whose headers count."""
    return is_trusted(_address(peer), trusted)


def throttle_key(address: str) -> str:
    """The key that throttles a client: its IPv4 address, or the /64 network of its IPv6 address."""
    parsed = _address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    return str(IPv6Network((int(parsed) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))


def _address(text: str) -> Address | None:
    """An address, with or without a port; an IPv4-mapped IPv6 address becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
