"""The documented rights are sufficient, and missing ones are named."""

from collections.abc import Iterator

import pytest

from cli.doctor.basic_checks import Finding
from cli.doctor.clickhouse_check import check_clickhouse, check_reader
from storage.tables.migrations.migrate import migrate, migrations
from tests.granted_clickhouse import GrantedClickHouse


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrantedClickHouse]:
    server = GrantedClickHouse(tmp_path_factory.mktemp("clickhouse"))
    server.start(120)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def migrated(server: GrantedClickHouse) -> GrantedClickHouse:
    migrate(server.address("operator"))
    return server


def wrong(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if not finding.ok]


def test_documented_rights_are_enough_to_migrate(server: GrantedClickHouse) -> None:
    assert migrate(server.address("operator")) == migrations()
    assert migrate(server.address("operator")) == []


def test_users_with_the_documented_rights_lack_nothing(migrated: GrantedClickHouse) -> None:
    writer, reader = migrated.address("granted"), migrated.address("granted_reader")
    assert wrong(check_clickhouse(migrated.address("operator"))) == []
    assert wrong(check_clickhouse(writer, ["writer", "processors"])) == []
    assert wrong(check_clickhouse(migrated.address("granted_processors"), ["processors"])) == []
    assert wrong(check_reader(reader, writer)) == []
    assert wrong(check_reader("", reader)) == []


def test_writer_s_user_is_no_operator(migrated: GrantedClickHouse) -> None:
    (finding,) = wrong(check_clickhouse(migrated.address("granted")))
    assert finding.name == "clickhouse rights: operator"
    assert "CREATE TABLE ON svc.*" in finding.message
    assert "SELECT ON system.mutations" in finding.message


def test_users_of_the_local_server_lack_nothing(migrated: GrantedClickHouse) -> None:
    assert wrong(check_clickhouse(migrated.url())) == []
    assert wrong(check_reader(migrated.url("reader"), migrated.url())) == []


def test_each_missing_right_is_named_with_its_grant(migrated: GrantedClickHouse) -> None:
    (finding,) = wrong(check_clickhouse(migrated.address("lacks"), ["operator"]))
    assert finding.message == "missing: OPTIMIZE ON svc.*, SELECT ON system.mutations"
    assert finding.fix == "GRANT OPTIMIZE ON svc.* TO lacks; GRANT SELECT ON system.mutations TO lacks;"


def test_a_read_only_user_can_not_be_the_writers(migrated: GrantedClickHouse) -> None:
    (finding,) = wrong(check_clickhouse(migrated.address("writes_readonly"), ["writer"]))
    assert "writes_readonly is read-only" in finding.message
    assert "SVC_CLICKHOUSE_READER_URL" in finding.fix


def test_error_with_the_readers_url_names_its_variable(migrated: GrantedClickHouse) -> None:
    writer, reader = migrated.address("granted"), migrated.address("granted_reader")
    (finding,) = wrong(check_reader(reader.replace(":granted@", ":bad@"), writer))
    assert finding.fix == "correct the user and password in SVC_CLICKHOUSE_READER_URL"
    (finding,) = wrong(check_reader("clickhouse://somewhere", writer))
    assert finding.message.startswith("SVC_CLICKHOUSE_READER_URL must be")
    found = wrong(check_reader(reader.replace("/svc", "/system"), writer))
    assert "names the database system" in found[0].message
