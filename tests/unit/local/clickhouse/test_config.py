"""The server's configuration files, filled in."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest

from local.clickhouse.local_clickhouse import USERS, LocalClickHouse, fill


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    LocalClickHouse(tmp_path).prepare()
    return tmp_path


def test_files_with_passwords_are_for_their_owner_only(prepared: Path) -> None:
    for name in ("config.xml", "users.xml", "passwords.json"):
        assert (prepared / name).stat().st_mode & 0o777 == 0o600


def test_server_listens_on_this_machine_only(prepared: Path) -> None:
    config = ElementTree.parse(prepared / "config.xml")
    assert [host.text for host in config.iter("listen_host")] == ["127.0.0.1"]
    assert {ip.text for ip in ElementTree.parse(prepared / "users.xml").iter("ip")} == {"127.0.0.1"}


def test_every_user_but_the_launchers_own_has_a_password(prepared: Path) -> None:
    users = ElementTree.parse(prepared / "users.xml").find("users")
    assert users is not None
    with_password = {user.tag for user in users if user.findtext("password_sha256_hex")}
    # The password of the definer of the analysts' views is never shown.
    assert with_password == {*USERS, "analyst_views"}
    assert {user.tag for user in users} - with_password == {"default"}


def test_passwords_and_port_stay_the_same_on_the_same_directory(tmp_path: Path) -> None:
    assert LocalClickHouse(tmp_path).url() == LocalClickHouse(tmp_path).url()
    assert LocalClickHouse(tmp_path).url("reader") != LocalClickHouse(tmp_path).url()


def test_missing_value_of_a_template_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("config.xml", directory="/d")


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[tuple[LocalClickHouse, list[str]]]:
    """A server that answers everything, where the local one would listen, and the statements it got."""
    statements: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            statements.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    local = LocalClickHouse(tmp_path)
    port = int(local.url().rpartition(":")[2].partition("/")[0])
    with HTTPServer(("127.0.0.1", port), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield local, statements
        server.shutdown()
        thread.join()


def test_only_the_first_look_makes_the_database(recorded: tuple[LocalClickHouse, list[str]]) -> None:
    local, statements = recorded
    assert [local.ready() for _ in range(3)] == [True] * 3
    assert [statement.startswith("CREATE DATABASE") for statement in statements] == [True, *[False] * 3]
    assert set(statements[1:]) == {"SELECT 1"}
