"""Ports are chosen once and stored."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from local import ports
from local.ports import RANGE, free_port, is_free, stored_ports


def test_ports_are_stored_between_starts(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    first = stored_ports(file, ("a", "b"))
    assert stored_ports(file, ("a", "b")) == first
    assert first["a"] != first["b"]


def test_port_in_use_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    first = stored_ports(file, ("a", "b"))
    with socket.create_server(("127.0.0.1", first["a"])):
        second = stored_ports(file, ("a", "b"))
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]


def test_free_port_is_outside_the_range_of_outgoing_connections() -> None:
    port = free_port()
    assert port in RANGE
    assert is_free(port)


def test_a_port_is_chosen_once_though_nothing_listens_on_it_yet() -> None:
    chosen = [free_port() for _ in range(300)]
    assert len(set(chosen)) == len(chosen)


def test_a_port_that_another_process_chose_is_not_chosen_though_nothing_listens_on_it_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = "from local.ports import free_port; print(free_port(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdin
        theirs = int(process.stdout.readline())
        monkeypatch.setattr(ports, "RANGE", range(theirs, theirs + 1))
        with pytest.raises(OSError, match="no free port"):
            ports.free_port()
        process.stdin.close()
