"""`svc schemas register`: what a registry is sent, and how its refusals read."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.__main__ import svc
from local.ports import free_port
from schemas.generate.json_schema import PUBLIC, document


class Registry(ThreadingHTTPServer):
    """Numbers the schemas that it gets, or gives one answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.schemas: dict[str, Any] = {}
        self.accounts: set[str | None] = set()
        self.answer: tuple[int, bytes] | None = None


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.accounts.add(self.headers["Authorization"])
        self.server.schemas[self.path] = sent
        status, body = self.server.answer or (200, b'{"id": %d}' % len(self.server.schemas))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """No lines among those of the tests."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def register(folder: Path, address: str, *options: str) -> Result:
    words = ["--data-dir", str(folder), "schemas", "register", address, *options]
    return CliRunner().invoke(svc, words, env={"SVC_TOPIC_PREFIX": "team.", "SVC_TOPIC_ISSUES": "Problems"})


def test_each_public_topic_has_a_subject_under_its_name(registry: Registry, tmp_path: Path) -> None:
    result = register(tmp_path, f"http://me:a%20word@127.0.0.1:{registry.server_port}/api/", "--json")
    assert result.exit_code == 0, result.output
    names = {title: f"team.{title}" for title in PUBLIC} | {"issues": "Problems"}
    assert set(json.loads(result.stdout)) == {f"{name}-value" for name in names.values()}
    for title, name in names.items():
        sent = registry.schemas[f"/api/subjects/{name}-value/versions"]
        assert sent == {"schemaType": "JSON", "schema": document(title)}
    assert registry.accounts == {"Basic bWU6YSB3b3Jk"}


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (
            (409, b'{"error_code": 409, "message": "Schema being registered is incompatible"}'),
            "svc: the registry refuses team.grouped-events-value: Schema being registered is incompatible\n",
        ),
        ((401, b"<html>"), "svc: the registry refuses team.grouped-events-value: HTTP 401\n"),
        ((200, b"<html>"), "svc: no answer of a schema registry from 127.0.0.1:"),
    ],
)
def test_a_refusal_is_one_line(
    registry: Registry, tmp_path: Path, answer: tuple[int, bytes], line: str
) -> None:
    registry.answer = answer
    result = register(tmp_path, f"http://127.0.0.1:{registry.server_port}")
    assert result.exit_code == 1
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1


def test_an_address_where_nothing_listens_or_that_is_none_is_one_line(tmp_path: Path) -> None:
    port = free_port()
    nowhere = register(tmp_path, f"http://127.0.0.1:{port}")
    assert nowhere.exit_code == 1
    assert nowhere.stderr.startswith(f"svc: no answer of a schema registry from 127.0.0.1:{port}: ")
    wrong = register(tmp_path, "registry:8081")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "svc: the registry must be http(s)://user:password@host:port\n",
    )
