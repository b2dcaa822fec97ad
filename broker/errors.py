"""Kafka errors that other packages catch: our own, and those of aiokafka, which only this package imports."""

from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

__all__ = [
    "CommitFailedError",
    "IllegalStateError",
    "KafkaError",
    "KafkaTimeoutError",
    "OffsetOutOfRangeError",
    "TopicAuthorizationFailedError",
]


class SinkUnavailable(Exception):
    """Not acknowledged, but possibly written: a retry relies on downstream deduplication."""


class RecordTooLarge(SinkUnavailable):
    """Not written: the record exceeds the topic's size limit. A retry fails too."""


class PartitionsLost(Exception):
    """The worker may have lost its partitions and must not write any more."""


class CommitStalled(KafkaError):  # type: ignore[misc]  # aiokafka has no types
    """No response to a commit: the client must be replaced."""


class TopicMissing(Exception):
    """The topic does not exist; the message says how to create it."""


class TopicsRefused(Exception):
    """The broker refused to create topics; the message names each with the reason."""
