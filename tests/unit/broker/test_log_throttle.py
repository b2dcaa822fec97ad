"""What the log repeats."""

import logging

from aiokafka.errors import TopicAuthorizationFailedError

from broker.log_throttle import RepeatFilter


def record(name: str, message: str) -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "msg": message, "levelno": logging.ERROR})


def test_repeated_sentence_of_kafka_s_client_is_written_once_in_30_s() -> None:
    now = 100.0
    rarely = RepeatFilter(lambda: now)
    assert rarely.filter(record("aiokafka.conn", "away"))
    assert not rarely.filter(record("aiokafka.conn", "away"))
    assert rarely.filter(record("aiokafka.conn", "something else"))
    now += 30
    assert rarely.filter(record("aiokafka.conn", "away"))


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


def test_refused_right_is_logged_once_a_minute_whoever_logs_it_and_without_a_traceback() -> None:
    now = 0.0
    rarely = RepeatFilter(lambda: now)

    def refused(name: str) -> logging.LogRecord:
        error = TopicAuthorizationFailedError("svc.grouped")
        fields = {"name": name, "msg": "crashed: %s", "args": (error,), "levelno": logging.ERROR}
        return logging.makeLogRecord(fields | {"exc_info": (type(error), error, None)})

    first = refused("faust")
    assert rarely.filter(first)
    assert first.exc_info is None
    assert not rarely.filter(refused("storage.writer.stage"))
    assert not rarely.filter(
        record("aiokafka.cluster", "Topic svc.grouped is not authorized for this client")
    )
    now = 60.0
    assert rarely.filter(refused("processors"))


def test_end_of_a_process_is_always_logged() -> None:
    rarely = RepeatFilter()
    line = "the worker stops: TopicAuthorizationFailedError: svc.grouped"
    fields = {"name": "cli.processors", "msg": line, "levelno": logging.CRITICAL}
    assert all(rarely.filter(logging.makeLogRecord(fields)) for _ in range(2))
