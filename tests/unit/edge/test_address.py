"""One edge an address: no other may share its port, whether its workers listen yet or not."""

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from edge.address import claim, new_listener
from edge.edge_supervisor import open_address
from local.ports import free_port
from schemas.errors import CannotRun

_ALL = [
    ("127.0.0.1", "127.0.0.1"),
    ("localhost", "127.0.0.1"),
    ("0.0.0.0", "127.0.0.1"),
    ("127.0.0.1", "0.0.0.0"),
    ("::", "127.0.0.1"),
    ("127.0.0.1", "::"),
    ("::", "0.0.0.0"),
]


PAIRS = [pair for pair in _ALL if "::" not in pair or socket.has_dualstack_ipv6()]


@pytest.fixture
def port() -> int:
    return free_port()


def assert_taken(host: str, port: int) -> None:
    with pytest.raises(OSError, match=r"listen|in use") as caught:
        claim(host, port, patience=0)
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_address_that_overlaps_a_claimed_one_is_refused_before_anybody_listens(
    port: int, first: str, second: str
) -> None:
    with claim(first, port, patience=0), new_listener(first, port, shared=True):
        assert_taken(second, port)
    claim(second, port, patience=0).close()


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_address_on_which_a_stranger_listens_is_refused_also_if_it_would_share(
    port: int, first: str, second: str
) -> None:
    with new_listener(first, port, shared=True) as listener:
        listener.listen()
        assert_taken(second, port)


def test_two_addresses_of_one_machine_may_have_the_same_port(port: int) -> None:
    with (
        claim("127.0.0.1", port, patience=0),
        new_listener("127.0.0.1", port, shared=True) as listener,
        claim("127.0.0.2", port, patience=0),
    ):
        listener.listen()
        new_listener("127.0.0.2", port, shared=True).close()


def test_connections_left_by_an_ended_edge_do_not_prevent_a_start(port: int) -> None:
    with claim("127.0.0.1", port, patience=0), new_listener("127.0.0.1", port, shared=True) as listener:
        listener.listen()
        client = socket.create_connection(("127.0.0.1", port))
        listener.setblocking(True)
        accepted, _ = listener.accept()
        # The side that closes first is left in TIME_WAIT.
        accepted.close()
        client.close()
    claim("127.0.0.1", port, patience=0).close()


def test_claim_ends_with_its_process_however_that_ends(port: int) -> None:
    program = (
        "import sys, time\nfrom edge.address import claim\n"
        "held = claim('127.0.0.1', int(sys.argv[1]), patience=0)\nprint('held', flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program, str(port)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert_taken("127.0.0.1", port)
        os.kill(holder.pid, signal.SIGKILL)
    claim("127.0.0.1", port, patience=0).close()


def test_edge_whose_address_another_has_cannot_start_and_says_so_in_one_line(port: int) -> None:
    sentence = f"can't listen on 127.0.0.1:{port}: another process listens there, or is about to"
    with claim("127.0.0.1", port, patience=0), pytest.raises(CannotRun, match=sentence):
        open_address("127.0.0.1", port, patience=0)
