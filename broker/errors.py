"""Errors of aiokafka that other packages catch: they do not import it themselves."""

from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, OffsetOutOfRangeError

__all__ = ["CommitFailedError", "IllegalStateError", "KafkaError", "OffsetOutOfRangeError"]
