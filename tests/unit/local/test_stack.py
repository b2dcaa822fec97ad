"""The children of `svc up`, chosen by the environment."""

import socket
from pathlib import Path

import pytest

from local.local_errors import StartError
from local.local_stack import PASSWORD_FILE, Stack
from local.ports import free_port
from schemas.errors import BadSetting

SERVERS = {"SVC_KAFKA_BOOTSTRAP": "kafka:9092", "SVC_CLICKHOUSE_URL": "http://svc:x@clickhouse:8123/svc"}
OURS = ["migrate", "edge", "processors", "writer", "dashboard"]
CHANNELS = {"SVC_NOTIFY_CHANNELS": '{"team": {"webhook": "http://127.0.0.1:1/"}}'}


def test_servers_without_an_address_are_started_before_our_processes(tmp_path: Path) -> None:
    assert [child.name for child in Stack(tmp_path, {}).children()] == ["kafka", "clickhouse", *OURS]


def test_servers_with_an_address_are_not_started(tmp_path: Path) -> None:
    stack = Stack(tmp_path, SERVERS)
    assert [child.name for child in stack.children()] == OURS
    assert stack.environ["SVC_KAFKA_BOOTSTRAP"] == "kafka:9092"


def test_no_local_server_is_started_if_several_are_given(tmp_path: Path) -> None:
    given = {
        "SVC_KAFKA_BOOTSTRAP": "kafka:9092",
        "SVC_CLICKHOUSE_SHARDS": "http://svc:x@ch1:8123/svc,http://svc:x@ch2:8123/svc",
        "SVC_CLICKHOUSE_CLUSTER": "events",
    }
    assert [child.name for child in Stack(tmp_path, given).children()] == OURS


def test_address_in_a_file_counts_as_given(tmp_path: Path) -> None:
    (tmp_path / "address").write_text("kafka:9092\n")
    stack = Stack(tmp_path, {"SVC_KAFKA_BOOTSTRAP_FILE": str(tmp_path / "address")})
    assert "kafka" not in [child.name for child in stack.children()]
    assert "SVC_KAFKA_BOOTSTRAP" not in stack.environ


def test_addresses_of_ipv6_are_in_brackets(tmp_path: Path) -> None:
    given = {"SVC_INGEST_HOST": "::1", "SVC_DASHBOARD_HOST": "::", "SVC_HEALTH_HOST": "::1"}
    stack = Stack(tmp_path, {**SERVERS, **given, "SVC_INGEST_PORT": "18180"})
    assert stack.ingest_url == "http://[::1]:18180"
    assert stack.dashboard_url == "http://[::1]:8081"
    assert stack.variables["SVC_INGEST_URL"] == "http://[::1]:18180"


def test_every_child_gets_the_addresses_and_the_data_directory(tmp_path: Path) -> None:
    stack = Stack(tmp_path, {})
    for child in stack.children()[2:]:
        assert child.env is not None
        assert child.env["SVC_KAFKA_BOOTSTRAP"].startswith("127.0.0.1:")
        assert child.env["SVC_CLICKHOUSE_URL"].startswith("http://svc:")
        assert child.env["SVC_CLICKHOUSE_READER_URL"].startswith("http://reader:")
        assert child.env["SVC_DATA_DIR"] == str(tmp_path)


def test_background_processes_yield_to_those_that_answer_clients(tmp_path: Path) -> None:
    background = {child.name for child in Stack(tmp_path, CHANNELS).children() if child.nice}
    assert background == {"clickhouse", "processors", "writer", "notify"}


def test_notifications_are_sent_where_there_are_channels(tmp_path: Path) -> None:
    (tmp_path / "channels").write_text(CHANNELS["SVC_NOTIFY_CHANNELS"])
    in_a_file = {"SVC_NOTIFY_CHANNELS_FILE": str(tmp_path / "channels")}
    for given in (CHANNELS, in_a_file):
        assert [child.name for child in Stack(tmp_path, SERVERS | given).children()] == [*OURS, "notify"]


def test_messages_link_to_the_dashboard_of_the_stack_unless_another_address_is_given(tmp_path: Path) -> None:
    given = SERVERS | CHANNELS | {"SVC_DASHBOARD_PORT": "18081"}
    for more, address in (
        ({}, "http://127.0.0.1:18081"),
        ({"SVC_DASHBOARD_URL": "https://errors.example.org"}, "https://errors.example.org"),
    ):
        child = Stack(tmp_path, given | more).children()[-1]
        assert child.name == "notify"
        assert child.env is not None
        assert child.env["SVC_DASHBOARD_URL"] == address


def test_port_of_notify_is_the_same_at_the_next_start(tmp_path: Path) -> None:
    ports = [Stack(tmp_path, SERVERS | CHANNELS).environ["SVC_NOTIFY_HEALTH_PORT"] for _ in range(2)]
    assert ports[0] == ports[1] != "8084"


def test_data_directory_of_the_command_wins_over_the_environments(tmp_path: Path) -> None:
    assert Stack(tmp_path, SERVERS | {"SVC_DATA_DIR": "/elsewhere"}).environ["SVC_DATA_DIR"] == str(tmp_path)


def test_admin_password_is_created_once_and_private(tmp_path: Path) -> None:
    first = Stack(tmp_path, SERVERS).dashboard.admin_password
    assert Stack(tmp_path, SERVERS).dashboard.admin_password == first
    assert (tmp_path / PASSWORD_FILE).stat().st_mode & 0o777 == 0o600


def test_configured_admin_password_is_used_and_none_is_created(tmp_path: Path) -> None:
    assert Stack(tmp_path, SERVERS | {"SVC_ADMIN_PASSWORD": "mine"}).dashboard.admin_password == "mine"
    assert not (tmp_path / PASSWORD_FILE).exists()


def test_everything_that_was_set_is_passed_on_to_other_commands(tmp_path: Path) -> None:
    variables = Stack(tmp_path, SERVERS | {"SVC_TOPIC_PREFIX": "mine.", "HOME": "/h"}).variables
    assert variables["SVC_TOPIC_PREFIX"] == "mine."
    assert variables["SVC_INGEST_URL"] == "http://127.0.0.1:8080"
    assert all(name.startswith("SVC_") for name in variables)


def test_files_are_passed_on_by_their_whole_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("password").write_text("mine\n")
    variables = Stack(tmp_path, SERVERS | {"SVC_ADMIN_PASSWORD_FILE": "password"}).variables
    assert variables["SVC_ADMIN_PASSWORD_FILE"] == str(tmp_path / "password")


def test_workers_of_the_edge_are_a_setting(tmp_path: Path) -> None:
    assert Stack(tmp_path, SERVERS, edge_workers=3).edge.edge_workers == 3


def test_server_on_all_addresses_is_reached_on_this_machine(tmp_path: Path) -> None:
    assert Stack(tmp_path, SERVERS | {"SVC_INGEST_HOST": "0.0.0.0"}).ingest_url == "http://127.0.0.1:8080"


def test_bad_setting_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="SVC_INGEST_PORT"):
        Stack(tmp_path, SERVERS | {"SVC_INGEST_PORT": "many"})


@pytest.mark.parametrize("setting", ["SVC_INGEST_PORT", "SVC_DASHBOARD_PORT"])
def test_port_in_use_is_named_with_its_setting(tmp_path: Path, setting: str) -> None:
    ports = {"SVC_INGEST_PORT": str(free_port()), "SVC_DASHBOARD_PORT": str(free_port())}
    stack = Stack(tmp_path, SERVERS | ports)
    stack.check_ports()
    with socket.create_server(("127.0.0.1", int(ports[setting]))), pytest.raises(StartError, match=setting):
        stack.check_ports()


@pytest.mark.parametrize(
    ("host", "reason"), [("no-such-host.invalid", "not known|resolution"), ("192.0.2.1", "assign")]
)
def test_an_address_that_is_not_here_is_no_port_in_use(tmp_path: Path, host: str, reason: str) -> None:
    stack = Stack(tmp_path, SERVERS | {"SVC_INGEST_HOST": host, "SVC_INGEST_PORT": str(free_port())})
    with pytest.raises(StartError, match=rf"can't listen .*({reason}).*: correct SVC_INGEST_HOST"):
        stack.check_ports()
