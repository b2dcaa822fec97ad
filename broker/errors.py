"""Errors of Kafka that other packages catch: our own, and those of aiokafka, which they do not import themselves."""

from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, OffsetOutOfRangeError

__all__ = ["CommitFailedError", "IllegalStateError", "KafkaError", "OffsetOutOfRangeError"]


class SinkUnavailable(Exception):
    """Not acknowledged. It may still have been written: whoever sends it again relies on ids being dropped downstream."""


class RecordTooLarge(SinkUnavailable):
    """Not written: the topic takes no record of this size. Sent again as it is, it is refused again."""


class PartitionsLost(Exception):
    """The worker may have lost its partitions: nothing more may be written."""


class CommitStalled(KafkaError):  # type: ignore[misc]  # aiokafka has no types
    """A commit has had no answer: the client is to be replaced."""


class TopicMissing(Exception):
    """There is no such topic; the text says what makes it."""


class TopicsRefused(Exception):
    """The broker refused to create topics; the text names each with the reason."""
