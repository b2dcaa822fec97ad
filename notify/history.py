"""Reads the records of `notifications`, and adds one, without leading."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from broker.client import name_of, open_consumer, open_producer, records_before
from broker.types import TopicPartition
from schemas.notifications import NotificationRecord, decode_notification, encode_notification
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)

ReadHistory = Callable[[int], Awaitable[list[NotificationRecord]]]
"""The records from a time on (Unix ms), in order. Raises KafkaError and OSError."""
AppendRecord = Callable[[NotificationRecord], Awaitable[None]]
"""Adds a record. Raises KafkaError and OSError."""

MAX_RECORDS: Final = 500_000
"""Records that are read at most, the newest: some 300 MB of causes would be more."""


class NotificationHistory:
    """Connects for each call: calls are few."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._partition = TopicPartition(name_of(settings, Topic.NOTIFICATIONS), 0)

    async def since(self, ms: int) -> list[NotificationRecord]:
        """The records that were written from then on (Unix ms), in order. Raises KafkaError and OSError."""
        found: list[NotificationRecord] = []
        async with open_consumer(self._settings) as consumer:
            consumer.assign([self._partition])
            ends = await consumer.end_offsets([self._partition])
            first = (await consumer.offsets_for_times({self._partition: ms}))[self._partition]
            start = ends[self._partition] if first is None else first.offset
            consumer.seek(self._partition, max(start, ends[self._partition] - MAX_RECORDS))
            async for record in records_before(consumer, ends):
                try:
                    found.append(decode_notification(record.value or b""))
                except msgspec.MsgspecError as error:
                    log.warning(
                        "skipping an unreadable notification at offset %d of %s: %s",
                        record.offset,
                        record.topic,
                        error,
                        extra={"event": "history_record_skipped"},
                    )
        return found

    async def append(self, record: NotificationRecord) -> None:
        """Add a record. Raises KafkaError and OSError."""
        topic, partition = self._partition
        async with open_producer(self._settings) as producer:
            await producer.send_and_wait(topic, encode_notification(record), partition=partition)
