"""Failures of subcommands: one line on standard error, and an exit status."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from broker.errors import KafkaError, KafkaTimeoutError, TopicsRefused
from broker.kafka_diagnosis import why_unreachable
from broker.send_errors import SendErrorKind, kind_of
from schemas.errors import (
    BadChange,
    ChangeRefused,
    ChangesUnavailable,
    EraseRefused,
    KeyReused,
    PipelineNotIdle,
    ProjectsUnavailable,
    RebuildRefused,
)
from schemas.settings import ClickHouseSettings, KafkaSettings

BAD_SETTING_STATUS = 2
REFUSED_STATUS = 2
"""Nothing was changed."""
_ACCESS_ERRORS = {None, 81, 194, 516}
"""ClickHouse error codes: no answer, no database, no password, wrong user or password."""
_ANSWER_SECONDS = 5.0
_ASK_DOCTOR = "`svc doctor --for operator` names missing rights and topics"


class CommandFailed(click.ClickException):
    """The end of a subcommand: click prints its line and exits with its status."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.exit_code = status

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """Print the line."""
        click.echo(f"svc: {self.message}", err=True)


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the program with one line on standard error."""
    raise CommandFailed(reason, status)


@contextmanager
def reported(settings: KafkaSettings, advice: str = "") -> Iterator[None]:
    """End the program with one line where the work on servers fails in a way that has a reason.

    `advice` is added to failures after which something may have been changed. The exit status is 1, or 2 for
    an erasure that is refused.
    """
    try:
        yield
    except Exception as error:
        reason = reason_of(settings, error, advice)
        if reason is None:
            raise
        raise CommandFailed(reason, REFUSED_STATUS if isinstance(error, EraseRefused) else 1) from None


def reason_of(settings: KafkaSettings, error: Exception, advice: str = "") -> str | None:
    """Why a command failed, in one line; None for an error that is a defect, or that click handles."""
    # Imported here: commands without ClickHouse need not wait for its client's imports.
    from storage.client import ClickHouseError
    from storage.errors import ReadError, StorageUnavailable

    reason = None
    match error:
        case BrokenPipeError():
            # The reader of our output has closed it (`| head`): click exits silently.
            pass
        case StorageUnavailable() | ClickHouseError():
            assert isinstance(settings, ClickHouseSettings)
            reason = _advised(_clickhouse_reason(settings, error), advice)
        case KafkaError() | OSError():
            reason = _advised(kafka_failure(settings, error), advice)
        case TopicsRefused():
            reason = f"Kafka at {settings.kafka_bootstrap}: {error}"
        case ProjectsUnavailable():
            reason = f"{error}; {kafka_hint(settings)}"
        case ChangesUnavailable():
            reason = f"{error}; {advice or 'are the processors running?'}"
        case PipelineNotIdle():
            reason = f"{error}; run it again"
        case BadChange() | ChangeRefused() | EraseRefused() | KeyReused() | RebuildRefused() | ReadError():
            reason = str(error)
    return reason


def kafka_failure(settings: KafkaSettings, error: Exception) -> str:
    """Why a command failed at Kafka: the reason of a failed connection (aiokafka gives none), or Kafka's error.

    Refused requests time out too, where aiokafka repeats them.
    """
    is_refusal = isinstance(error, TimeoutError | KafkaTimeoutError) or kind_of(error) is SendErrorKind.DENIED
    reason = why_unreachable(settings) or (f"{error}; {_ASK_DOCTOR}" if is_refusal else error)
    return f"Kafka at {settings.kafka_bootstrap}: {reason}"


def kafka_hint(settings: KafkaSettings) -> str:
    """A hint for a change that Kafka didn't confirm in time."""
    return str(why_unreachable(settings) or f"Kafka answers: {_ASK_DOCTOR}")


def _advised(reason: str, advice: str) -> str:
    return f"{reason}; {advice}" if advice else reason


def _clickhouse_reason(settings: ClickHouseSettings, error: Exception) -> str:
    from storage.client import answers
    from storage.errors import StorageUnavailable

    if isinstance(error, StorageUnavailable) and settings.clickhouse_reader_url:
        return clickhouse_failure(settings.reader_url, error, "SVC_CLICKHOUSE_READER_URL")
    if len(urls := settings.shard_urls) > 1:
        unavailable = next((url for url in urls if not answers(url, _ANSWER_SECONDS)), urls[0])
        return clickhouse_failure(unavailable, error, "SVC_CLICKHOUSE_SHARDS")
    return clickhouse_failure(settings.clickhouse_url, error)


def clickhouse_failure(url: str, error: Exception, variable: str = "SVC_CLICKHOUSE_URL") -> str:
    """The reason of a command's failure at ClickHouse, in one line.

    It says why the address in `variable` is unusable, or gives the server's error.
    """
    # Imported here, as above.
    from cli.doctor.clickhouse_check import why_refused

    # The server's own errors are more precise than ours, except these.
    finding = why_refused(url, variable) if getattr(error, "code", None) in _ACCESS_ERRORS else None
    reason = f"{finding.message}: {finding.fix}" if finding else " ".join(str(error).split())
    return f"ClickHouse: {reason}"
