"""What the log repeats."""

import logging

import pytest
from aiokafka.errors import TopicAuthorizationFailedError

from broker.errors import PartitionsLost
from broker.log_throttle import RepeatFilter


def record(name: str, message: str) -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "msg": message, "levelno": logging.ERROR})


@pytest.mark.parametrize("client", ["aiokafka.conn", "clickhouse_connect.driver"])
def test_repeated_sentence_of_a_server_s_client_is_written_once_in_30_s(client: str) -> None:
    now = 100.0
    rarely = RepeatFilter(lambda: now)
    assert rarely.filter(record(client, "away"))
    assert not rarely.filter(record(client, "away"))
    assert rarely.filter(record(client, "something else"))
    now += 30
    assert rarely.filter(record(client, "away"))


def test_a_takeover_is_logged_without_a_traceback() -> None:
    lost, fault = record("faust.agents.actor", "Crashed"), record("faust.agents.actor", "Crashed")
    for line, error in ((lost, PartitionsLost("another worker wrote")), (fault, ValueError("no"))):
        line.exc_info = type(error), error, None
        assert RepeatFilter().filter(line)
    assert lost.exc_info is None
    assert fault.exc_info is not None


def test_other_loggers_are_never_held_back() -> None:
    rarely = RepeatFilter()
    assert all(rarely.filter(record("edge.process", "again")) for _ in range(5))


def test_sentences_long_past_are_forgotten() -> None:
    now = 0.0
    rarely = RepeatFilter(lambda: now)
    for number in range(1000):
        now = float(number)
        assert rarely.filter(record("aiokafka", f"number {number}"))
    assert len(rarely._passed_at) <= 31


class Refusals:
    """A log whose clock tests set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rarely = RepeatFilter(lambda: self.now)

    def passed(self, name: str, message: str, at: float) -> bool:
        """Whether the line is logged at that time."""
        self.now = at
        return self.rarely.filter(record(name, message))


FETCH = "aiokafka.consumer.fetcher", "Not authorized to read from topic svc.grouped."
COMMIT = "aiokafka.consumer.group_coordinator", "OffsetCommit failed for unauthorized topics {'svc.issues'}"
STORE = "control.issue_changes", "StorageUnavailable('the reading user lacks a right on ClickHouse')"


def test_refusals_are_not_logged_beside_the_line_that_names_the_right() -> None:
    log = Refusals()
    assert not any(log.passed(*line, at=0) for line in (FETCH, COMMIT, STORE))
    assert log.passed("broker.rights_watch", "missing: Read on topic svc.grouped", at=4)
    # The watch reminds a minute later, when it next asks.
    assert not any(log.passed(*FETCH, at=at) for at in range(5, 68))
    assert log.passed("broker.rights_watch", "missing: Read on topic svc.grouped", at=68)


def test_refusals_that_no_line_names_are_logged_once_a_minute_whoever_logs_them() -> None:
    log = Refusals()
    seconds = [at for at in range(130) for line in (FETCH, COMMIT, STORE) if log.passed(*line, at=at)]
    assert seconds == [10, 70]


def test_refusal_has_no_traceback() -> None:
    error = TopicAuthorizationFailedError("svc.grouped")
    fields = {"name": "faust", "msg": "crashed: %s", "args": (error,), "levelno": logging.ERROR}
    line = logging.makeLogRecord(fields | {"exc_info": (type(error), error, None)})
    RepeatFilter().filter(line)
    assert line.exc_info is None


def test_end_of_a_process_is_always_logged() -> None:
    rarely = RepeatFilter()
    line = "the worker stops: TopicAuthorizationFailedError: svc.grouped"
    fields = {"name": "cli.processors", "msg": line, "levelno": logging.CRITICAL}
    assert all(rarely.filter(logging.makeLogRecord(fields)) for _ in range(2))
