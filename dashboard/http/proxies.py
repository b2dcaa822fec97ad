"""Who is on the other end: the connection's peer, or whom proxies that are trusted name in `X-Forwarded-For`."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from schemas.errors import BadSetting

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]
_NETWORK_BITS: Final = 64
"""Whoever has one IPv6 address has all of its network."""


def parse_networks(text: str) -> Networks:
    """Addresses and networks, separated by commas. Raises BadSetting."""
    try:
        return tuple([ip_network(one.strip()) for one in text.split(",") if one.strip()])
    except ValueError as error:
        raise BadSetting(
            f"SVC_DASHBOARD_TRUSTED_PROXIES must be addresses or networks such as 10.0.0.0/8, separated by commas: {error}"
        ) from None


def client_address(peer: str, forwarded: Sequence[str], trusted: Networks) -> str:
    """The rightmost address that is no trusted proxy's; `forwarded` are the values of `X-Forwarded-For` in their order.

    What stands left of it was written by whoever sent the request. A hop that is no address ends the search.
    """
    found = _address(peer)
    if found is None:
        return peer
    for hop in reversed([hop for value in forwarded for hop in value.split(",")]):
        if not is_trusted(found, trusted):
            break
        before = _address(hop)
        if before is None:
            break
        found = before
    return str(found)


def is_trusted(address: Address | None, trusted: Networks) -> bool:
    """Whether the address is a trusted proxy's."""
    return address is not None and any(address in network for network in trusted)


def is_from_trusted(peer: str, trusted: Networks) -> bool:
    """Whether the connection comes from a trusted proxy, so that its headers may be believed."""
    return is_trusted(_address(peer), trusted)


def throttled_as(address: str) -> str:
    """What stands for everybody who can choose this address: the address, or the /64 of an IPv6 one."""
    found = _address(address)
    if not isinstance(found, IPv6Address):
        return address
    return str(IPv6Network((int(found) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))


def _address(text: str) -> Address | None:
    """An address, also with a port behind it; one of IPv4 written as IPv6 is one of IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
