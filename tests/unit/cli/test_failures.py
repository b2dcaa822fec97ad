"""Messages of failing subcommands."""

import click
import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, TopicAuthorizationFailedError
from click.testing import CliRunner
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError

from broker.errors import TopicsRefused
from cli.failures import clickhouse_failure, kafka_failure, kafka_hint, reason_of, reported
from schemas.errors import ChangesUnavailable, EraseRefused, PipelineNotIdle, RebuildRefused
from schemas.settings import KafkaSettings, MigrateSettings
from storage.errors import NotFound


def test_a_closed_pipe_is_no_error_of_kafka() -> None:
    with pytest.raises(BrokenPipeError), reported(KafkaSettings(kafka_bootstrap="127.0.0.1:1")):
        raise BrokenPipeError


def test_error_of_kafka_says_why_we_are_refused() -> None:
    with (
        pytest.raises(click.ClickException, match=r"nothing listens on 127\.0\.0\.1:1"),
        reported(KafkaSettings(kafka_bootstrap="127.0.0.1:1")),
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
    monkeypatch.setattr("cli.failures.why_unreachable", lambda _: None)
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


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (EraseRefused("there is no project shop"), "there is no project shop", 2),
        (RebuildRefused("the processors run"), "the processors run", 1),
        (TopicsRefused("svc.events: not authorized"), "Kafka at 127.0.0.1:1: svc.events: not authorized", 1),
        (ChangesUnavailable("no answer in 10 s"), "no answer in 10 s; are the processors running?", 1),
        (PipelineNotIdle("30 records left"), "30 records left; run it again", 1),
        (NotFound("there is no such issue"), "there is no such issue", 1),
        (DatabaseError("No space left", code=243), "ClickHouse: No space left", 1),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Exception) else "",
)
def test_each_known_failure_is_one_line_with_an_exit_status(error: Exception, line: str, status: int) -> None:
    @click.command()
    def command() -> None:
        with reported(MigrateSettings(kafka_bootstrap="127.0.0.1:1")):
            raise error

    result = CliRunner().invoke(command)
    assert (result.exit_code, result.stderr, result.stdout) == (status, f"svc: {line}\n", "")


def test_advice_follows_failures_after_which_something_may_have_changed() -> None:
    settings = MigrateSettings(kafka_bootstrap="127.0.0.1:1")
    for error, line in (
        (ChangesUnavailable("no answer in 10 s"), "no answer in 10 s; run it again to resume"),
        (DatabaseError("No space left", code=243), "ClickHouse: No space left; run it again to resume"),
        (EraseRefused("there is no project shop"), "there is no project shop"),
    ):
        assert reason_of(settings, error, "run it again to resume") == line


def test_defect_is_not_reported_as_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), reported(KafkaSettings()):
        raise ZeroDivisionError
