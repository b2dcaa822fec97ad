"""Is it ready, and is it ours? Another deployment on the port answers just as well."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

from local.local_stack import Stack
from local.ports import free_port
from local.readiness import is_ready, unready_parts
from schemas.health import Health
from tests.unit.local.test_stack import CHANNELS, SERVERS


@contextmanager
def answering(body: bytes, status: int = 200, port: int = 0) -> Iterator[str]:
    """The address of a server that answers every GET so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is said."""

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def readiness(instance: str = "") -> bytes:
    return json.dumps({"ready": True, "parts": {}} | ({"instance": instance} if instance else {})).encode()


def test_process_is_ready_when_it_says_so_and_is_the_one_that_was_started() -> None:
    with answering(readiness("ours")) as address:
        assert is_ready(address)
        assert is_ready(address, "ours")
        assert not is_ready(address, "theirs")


@pytest.mark.parametrize("body", [readiness(), b"", b"[]", b"null", b"{}", b"\xff"])
def test_answer_without_the_instance_is_not_ours(body: bytes) -> None:
    with answering(body) as address:
        assert not is_ready(address, "ours")


def test_process_that_is_not_ready_is_not() -> None:
    with answering(readiness("ours"), 503) as address:
        assert not is_ready(address, "ours")


def test_process_that_is_not_ready_says_which_part_is_missing_and_how_far_it_is() -> None:
    health = Health("ours")
    health.set("kafka", ok=True)
    health.set("assigned", ok=False, detail="recovering: 12,000 table records read")
    with answering(msgspec.json.encode(health.readiness()), 503) as address:
        assert unready_parts(address, "ours") == "assigned: recovering: 12,000 table records read"
        assert unready_parts(address, "theirs") == ""
        assert unready_parts("", "ours") == ""
    assert unready_parts(f"http://127.0.0.1:{free_port()}", "ours") == ""


def test_closed_port_and_non_http_server_are_not_ready() -> None:
    assert not is_ready(f"http://127.0.0.1:{free_port()}")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"220 mail\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        assert not is_ready(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("edge", "SVC_INGEST_PORT"),
        ("dashboard", "SVC_DASHBOARD_PORT"),
        ("writer", "SVC_WRITER_HEALTH_PORT"),
        ("processors", "SVC_PROCESSORS_HEALTH_PORT"),
        ("notify", "SVC_NOTIFY_HEALTH_PORT"),
    ],
)
def test_child_of_svc_up_is_not_ready_because_another_deployment_answers_on_its_port(
    tmp_path: Path, name: str, variable: str
) -> None:
    port = free_port()
    stack = Stack(tmp_path, SERVERS | CHANNELS | {variable: str(port), "SVC_INSTANCE": "given"})
    (child,) = [child for child in stack.children() if child.name == name]
    assert child.env is not None
    with answering(readiness("given"), port=port):
        assert not child.ready()
    with answering(readiness(child.env["SVC_INSTANCE"]), port=port):
        assert child.ready()
    assert stack.variables.get("SVC_INSTANCE") == "given"
