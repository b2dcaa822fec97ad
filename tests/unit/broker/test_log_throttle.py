"""Repeated log messages are throttled."""

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
    assert all(rarely.filter(record("edge.edge_process", "again")) for _ in range(5))


def test_sentences_long_past_are_forgotten() -> None:
    now = 0.0
    rarely = RepeatFilter(lambda: now)
    for number in range(1000):
        now = float(number)
        assert rarely.filter(record("aiokafka", f"number {number}"))
    assert len(rarely._passed_at) <= 31


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aiokafka.consumer.group_coordinator", "OffsetCommit failed for unauthorized topics {'svc.issues'}"),
        ("control.issue_changes", "StorageUnavailable('the reading user lacks a right on ClickHouse')"),
    ],
)
def test_refusal_is_logged_once_in_30_s_by_any_logger(name: str, message: str) -> None:
    now = 0.0
    rarely = RepeatFilter(lambda: now)
    passed = []
    for second in range(65):
        now = float(second)
        passed += [second] if rarely.filter(record(name, message)) else []
    assert passed == [0, 30, 60]


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
