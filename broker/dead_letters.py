"""Reads dead letters, and writes them back to their topics after their cause is fixed.

The replay position is the committed offset of a consumer group and a marker record in the topic, because the
offset expires before the dead letters do. Replay is at-least-once; consumers deduplicate by event id.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.client import name_of, open_consumer, open_producer, records_before
from broker.rights import DEAD_LETTERS_GROUP
from broker.types import Consumer, Record, TopicPartition
from schemas.dead_letters import DeadLetter, from_headers, replay_marker, replayed_before
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)

Letter = tuple[DeadLetter, list[tuple[str, bytes]], Record]
"""A dead letter, the headers of its record, and the record that carries it."""


@asynccontextmanager
async def dead_letters_reader(settings: KafkaSettings) -> AsyncIterator[tuple[Consumer, TopicPartition]]:
    """A consumer of the dead letters, in the group whose commit is the replay position."""
    async with open_consumer(settings, group_id=settings.topic_prefix + DEAD_LETTERS_GROUP) as consumer:
        tp = TopicPartition(name_of(settings, Topic.DEAD_LETTERS), 0)
        consumer.assign([tp])
        yield consumer, tp


async def letters(consumer: Consumer, tp: TopicPartition, *, everything: bool) -> AsyncIterator[Letter]:
    """Dead letters up to the current end: all, or those not replayed yet."""
    first = (await consumer.beginning_offsets([tp]))[tp]
    begin = first if everything else await _replay_position(consumer, tp, first)
    async for record in _records(consumer, tp, begin):
        if replayed_before(record.headers) is not None:
            continue
        try:
            letter, headers = from_headers(record.headers)
        except ValueError as error:
            log.warning(
                "skipping %s/%d/%d, which isn't a dead letter: %s",
                record.topic,
                record.partition,
                record.offset,
                error,
                extra={"event": "dead_letter_skipped"},
            )
            continue
        yield letter, headers, record


async def _replay_position(consumer: Consumer, tp: TopicPartition, first: int) -> int:
    position = max(first, await consumer.committed(tp) or 0)
    async for record in _records(consumer, tp, position):
        position = max(position, replayed_before(record.headers) or 0)
    return position


async def _records(consumer: Consumer, tp: TopicPartition, begin: int) -> AsyncIterator[Record]:
    """The records from an offset to the current end."""
    end = (await consumer.end_offsets([tp]))[tp]
    consumer.seek(tp, begin)
    async for record in records_before(consumer, {tp: end}):
        yield record


async def put_back(settings: KafkaSettings, limit: int | None) -> int:
    """Write dead letters back to their topics, in order, each once; returns how many. Raises KafkaError."""
    done = after = 0
    async with dead_letters_reader(settings) as (consumer, tp), open_producer(settings) as producer:
        try:
            async for letter, headers, record in letters(consumer, tp, everything=False):
                if limit is not None and done >= limit:
                    break
                await producer.send_and_wait(
                    letter.topic, record.value, record.key, partition=letter.partition, headers=headers
                )
                after = record.offset + 1
                await consumer.commit({tp: after})
                done += 1
        finally:
            if after:
                await producer.send_and_wait(
                    tp.topic, b"", partition=tp.partition, headers=replay_marker(after)
                )
    return done
