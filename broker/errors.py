"""Errors of Kafka that may cross a module's border: those of the client library that we tell apart, and our own."""

from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, OffsetOutOfRangeError

__all__ = ["CommitFailedError", "IllegalStateError", "KafkaError", "OffsetOutOfRangeError"]
