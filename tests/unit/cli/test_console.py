"""What the subcommands share at the terminal."""

import logging

import click
import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, TopicAuthorizationFailedError
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError

from cli import __main__
from cli.console import clickhouse_failure, kafka_errors, kafka_failure, kafka_hint
from schemas.settings import KafkaSettings


def test_a_closed_pipe_is_no_error_of_kafka() -> None:
    with pytest.raises(BrokenPipeError), kafka_errors(KafkaSettings(kafka_bootstrap="127.0.0.1:1")):
        raise BrokenPipeError


def test_error_of_kafka_says_what_keeps_us_out() -> None:
    with (
        pytest.raises(click.ClickException, match=r"nothing listens on 127\.0\.0\.1:1"),
        kafka_errors(KafkaSettings(kafka_bootstrap="127.0.0.1:1")),
    ):
        raise KafkaConnectionError("Unable to bootstrap")


@pytest.mark.parametrize(
    "error",
    [TopicAuthorizationFailedError("svc.events"), KafkaTimeoutError("Failed to get offsets"), TimeoutError()],
)
def test_a_refusal_of_kafka_s_names_the_command_that_finds_the_right(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = KafkaSettings(kafka_bootstrap="127.0.0.1:1")
    monkeypatch.setattr("cli.console.why_unreachable", lambda _: None)
    assert "`svc doctor --for operator` names missing rights" in kafka_failure(settings, error)
    assert "`svc doctor --for operator` names missing rights" in kafka_hint(settings)
    assert "doctor" not in kafka_failure(settings, KafkaError("other"))


def test_connection_failures_have_our_message_and_other_errors_the_servers() -> None:
    url = "http://svc:x@127.0.0.1:1/svc"
    message = clickhouse_failure(url, ClickHouseError("HTTPConnectionPool(host='127.0.0.1', port=1)"))
    assert message.startswith("ClickHouse: nothing answers at 127.0.0.1:1")
    refused = DatabaseError("Not enough privileges.\nIt's necessary to have the grant X", code=497)
    assert (
        clickhouse_failure(url, refused)
        == "ClickHouse: Not enough privileges. It's necessary to have the grant X"
    )


def test_commands_are_not_talked_over_by_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    level = root.level
    monkeypatch.setattr(logging.getLogger("aiokafka"), "level", logging.NOTSET)
    monkeypatch.setattr(__main__.svc, "main", lambda **_: None)
    try:
        __main__.main()
        assert not logging.getLogger("aiokafka").isEnabledFor(logging.ERROR)
    finally:
        root.setLevel(level)
