"""`svc analysts` prints connection details and SQL."""

import hashlib
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.__main__ import svc
from local.clickhouse.local_clickhouse import LocalClickHouse
from local.data_dir import locked
from local.local_stack import Stack
from schemas.environment import load
from schemas.errors import BadSetting
from schemas.settings import AnalystSettings


def run(data_dir: Path, *words: str, text: str | None = None, **env: str) -> Result:
    return CliRunner().invoke(svc, ["--data-dir", str(data_dir), "analysts", *words], env=env, input=text)


def test_statements_hold_the_passwords_hash_and_not_the_password(tmp_path: Path) -> None:
    answer = run(tmp_path, "sql", "ann", SVC_ANALYST_PASSWORD="the word")
    assert answer.exit_code == 0, answer.output
    assert hashlib.sha256(b"the word").hexdigest() in answer.output
    assert "the word" not in answer.output
    assert "GRANT SELECT ON `svc`.analyst_events TO svc_analyst;" in answer.output


def test_an_analyst_of_some_projects_gets_a_database_and_policies(tmp_path: Path) -> None:
    answer = run(tmp_path, "sql", "bob", "--project", "23", "--project", "17", text="w\nw\n")
    assert answer.exit_code == 0, answer.output
    assert "CREATE DATABASE IF NOT EXISTS `svc_bob`;" in answer.output
    assert "ON `svc`.events USING project_id IN (17, 23) TO `svc_bob_views`;" in answer.output


def test_database_name_comes_from_the_address(tmp_path: Path) -> None:
    env = {"SVC_CLICKHOUSE_URL": "http://u:p@h:1/errors", "SVC_ANALYST_PASSWORD": "w"}
    assert "GRANT SELECT ON `errors`.analyst_events" in run(tmp_path, "sql", "ann", **env).output


@pytest.mark.parametrize("name", ["a-b", "1a", "", "a b", "a`b"])
def test_a_name_that_would_need_quoting_is_refused(tmp_path: Path, name: str) -> None:
    answer = run(tmp_path, "sql", name, SVC_ANALYST_PASSWORD="w")
    assert answer.exit_code == 2
    assert "letters, digits" in answer.output


def test_connect_prints_the_address_of_the_local_server(tmp_path: Path) -> None:
    server = LocalClickHouse(tmp_path / "clickhouse")
    answer = run(tmp_path, "connect")
    assert answer.exit_code == 0, answer.output
    secret = server.url("analyst").split("analyst:")[1].split("@")[0]
    assert secret in answer.output
    assert "sees every project" in answer.output
    named = run(tmp_path, "connect", SVC_ANALYST_PASSWORD="it's", SVC_ANALYST_PROJECTS="17, 23")
    assert "password   it's\n" in named.output
    assert "sees projects 17, 23" in named.output


def test_asking_where_to_connect_moves_nothing_while_the_server_listens(tmp_path: Path) -> None:
    server = LocalClickHouse(tmp_path / "clickhouse")
    port = int(server.url().rpartition(":")[2].partition("/")[0])

    def files() -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    before = files()
    with socket.create_server(("127.0.0.1", port)):
        answer = run(tmp_path, "connect")
    assert f"http://127.0.0.1:{port} " in answer.output
    assert files() == before


def test_a_stopped_server_is_reported(tmp_path: Path) -> None:
    LocalClickHouse(tmp_path / "clickhouse")
    assert "not running: start `svc up`" in run(tmp_path, "connect").stderr
    with locked(tmp_path):
        assert "not running" not in run(tmp_path, "connect").stderr


def test_without_a_local_server_connect_says_how_to_start_one(tmp_path: Path) -> None:
    answer = run(tmp_path, "connect")
    assert answer.exit_code == 2
    assert "start `svc up`" in answer.output
    assert not (tmp_path / "clickhouse").exists()


def test_projects_are_numbers_with_commas() -> None:
    assert load(AnalystSettings, {"SVC_ANALYST_PROJECTS": " 17 ,23"}).projects == (17, 23)
    assert load(AnalystSettings, {}).projects == ()
    with pytest.raises(BadSetting, match="SVC_ANALYST_PROJECTS"):
        load(AnalystSettings, {"SVC_ANALYST_PROJECTS": "17; DROP"})


def test_the_stack_hands_both_settings_to_its_server(tmp_path: Path) -> None:
    given = {"SVC_KAFKA_BOOTSTRAP": "k:1", "SVC_ANALYST_PASSWORD": "word", "SVC_ANALYST_PROJECTS": "17"}
    clickhouse = next(child for child in Stack(tmp_path, given).children() if child.name == "clickhouse")
    clickhouse.command()
    users = (tmp_path / "clickhouse" / "users.xml").read_text()
    assert hashlib.sha256(b"word").hexdigest() in users
    assert "project_id IN (17)" in users
