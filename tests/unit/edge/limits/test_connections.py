"""Connections: so many in all and of one sender, and no more than the process has file descriptors for."""

import pytest

from edge.limits.connections import ConnectionLimits, affordable, sender_of


def test_one_sender_meets_its_limit_and_another_is_admitted() -> None:
    limits = ConnectionLimits(10, 2)
    assert [limits.admit("a") for _ in range(3)] == [None, None, "address"]
    assert limits.admit("b") is None
    limits.release("a")
    assert limits.admit("a") is None
    assert limits.total == 3


def test_one_sender_never_takes_more_than_half_of_all() -> None:
    limits = ConnectionLimits(10, 5000)
    assert [limits.admit("a") for _ in range(6)] == [None] * 5 + ["address"]
    assert [limits.admit("b") for _ in range(6)] == [None] * 5 + ["total"]


def test_without_a_limit_by_address_one_sender_may_take_all() -> None:
    limits = ConnectionLimits(10, 0)
    assert [limits.admit("proxy") for _ in range(11)] == [None] * 10 + ["total"]


def test_senders_that_are_gone_are_forgotten() -> None:
    limits = ConnectionLimits(10, 1)
    for number in range(100):
        limits.admit(str(number))
        limits.release(str(number))
    limits.admit("a")
    limits.admit("a")
    assert dict(limits._by_sender) == {"a": 1}


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(1_000_000, 20_000), (20_000, 19_744), (1024, 768), (300, 150)]
)
def test_descriptors_are_left_for_everything_else(descriptors: int, connections: int) -> None:
    assert affordable(20_000, descriptors) == connections


@pytest.mark.parametrize(
    ("address", "sender"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_sender_is_an_ipv4_address_or_the_network_of_an_ipv6_one(address: str, sender: str) -> None:
    assert sender_of(address) == sender
