"""The client's address behind proxies: only the header of a trusted proxy counts."""

import pytest

from dashboard.http.proxies import client_address, parse_networks, throttle_key
from schemas.errors import BadSetting

TRUSTED = parse_networks("10.0.0.0/8, 192.0.2.1, fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4, 198.51.100.1, 192.0.2.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4", "198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.7, 10.0.0.8"], "10.0.0.7"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_the_client_is_the_rightmost_that_is_no_trusted_proxy(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert client_address(peer, forwarded, TRUSTED) == client


def test_without_trusted_proxies_the_peer_is_the_client() -> None:
    assert client_address("10.0.0.1", ["198.51.100.1"], parse_networks("")) == "10.0.0.1"


@pytest.mark.parametrize("text", ["proxy.example", "10.0.0.1/8", "10.0.0.0/8;::1", "300.1.1.1"])
def test_an_invalid_network_is_refused_by_the_settings_name(text: str) -> None:
    with pytest.raises(BadSetting, match="SVC_DASHBOARD_TRUSTED_PROXIES"):
        parse_networks(text)


def test_addresses_of_one_ipv6_network_are_throttled_together() -> None:
    assert throttle_key("2001:db8::1") == throttle_key("2001:db8::ffff:1") == "2001:db8::/64"
    assert throttle_key("2001:db8:0:1::1") != throttle_key("2001:db8::1")
    assert throttle_key("203.0.113.9") == "203.0.113.9"
