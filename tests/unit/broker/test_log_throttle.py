"""What the log repeats."""

import logging

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
