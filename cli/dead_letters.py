"""`svc dead-letters`: what was set aside and why, and putting it back once its cause is mended.

How far letters have been put back is the committed offset of a consumer group, and a mark among the letters, since an offset expires
before they do. A letter is put back at least once, and what reads it goes by the event's id.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import click

from broker.client import name_of, reading, records_before, writing
from broker.types import Consumer, Record, TopicPartition
from cli.console import kafka_errors, need_kafka, print_json, settings_of
from cli.workspace import Workspace
from schemas.dead_letters import DeadLetter, from_headers, replay_marker, replayed_before
from schemas.settings import KafkaSettings, MigrateSettings
from schemas.topics import Topic

GROUP: Final = "dead-letters-replay"
Letter = tuple[DeadLetter, list[tuple[str, bytes]], Record]


@asynccontextmanager
async def _reader(settings: KafkaSettings) -> AsyncIterator[tuple[Consumer, TopicPartition]]:
    async with reading(settings, group_id=settings.topic_prefix + GROUP) as consumer:
        place = TopicPartition(name_of(settings, Topic.DEAD_LETTERS), 0)
        consumer.assign([place])
        yield consumer, place


async def _letters(consumer: Consumer, place: TopicPartition, *, everything: bool) -> AsyncIterator[Letter]:
    """Letters up to the present end: all, or those that have not been put back."""
    first = (await consumer.beginning_offsets([place]))[place]
    begin = first if everything else await _put_back_before(consumer, place, first)
    async for record in _records(consumer, place, begin):
        if replayed_before(record.headers) is not None:
            continue
        try:
            letter, headers = from_headers(record.headers)
        except ValueError as error:
            click.echo(f"{record.topic}/{record.partition}/{record.offset}: {error}", err=True)
            continue
        yield letter, headers, record


async def _put_back_before(consumer: Consumer, place: TopicPartition, first: int) -> int:
    found = max(first, await consumer.committed(place) or 0)
    async for record in _records(consumer, place, found):
        found = max(found, replayed_before(record.headers) or 0)
    return found


async def _records(consumer: Consumer, place: TopicPartition, begin: int) -> AsyncIterator[Record]:
    """The records from an offset on, up to the present end."""
    end = (await consumer.end_offsets([place]))[place]
    consumer.seek(place, begin)
    async for record in records_before(consumer, {place: end}):
        yield record


async def show(settings: KafkaSettings, add: Callable[[Letter], None], *, everything: bool) -> None:
    """Hand each letter to `add`."""
    async with _reader(settings) as (consumer, place):
        async for letter in _letters(consumer, place, everything=everything):
            add(letter)


async def put_back(settings: KafkaSettings, limit: int | None) -> int:
    """Write letters to where they came from, in order; returns how many. What was written is not put back again. Raises KafkaError."""
    done = after = 0
    async with _reader(settings) as (consumer, place), writing(settings) as producer:
        try:
            async for letter, headers, record in _letters(consumer, place, everything=False):
                if limit is not None and done >= limit:
                    break
                await producer.send_and_wait(
                    letter.topic, record.value, record.key, partition=letter.partition, headers=headers
                )
                after = record.offset + 1
                await consumer.commit({place: after})
                done += 1
        finally:
            if after:
                await producer.send_and_wait(
                    place.topic, b"", partition=place.partition, headers=replay_marker(after)
                )
    return done


def _row(letter: Letter) -> dict[str, Any]:
    told, _, record = letter
    return {
        "at": told.at,
        "stage": told.stage,
        "topic": told.topic,
        "partition": told.partition,
        "offset": told.offset,
        "projectId": told.project_id or None,
        "reason": told.reason,
        "bytes": len(record.value or b""),
    }


def _settings(workspace: Workspace) -> MigrateSettings:
    settings = settings_of(workspace, MigrateSettings)
    need_kafka(settings.kafka_bootstrap)
    return settings


@click.group()
def dead_letters() -> None:
    """Records that could not be processed."""


@dead_letters.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that have been put back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def list_(workspace: Workspace, everything: bool, as_json: bool) -> None:
    """List what was set aside, from where, and why."""
    found: list[dict[str, Any]] = []
    settings = _settings(workspace)
    with kafka_errors(settings):
        asyncio.run(show(settings, lambda letter: found.append(_row(letter)), everything=everything))
    if as_json:
        print_json({"deadLetters": found})
        return
    for row in found:
        place = f"{row['topic']}/{row['partition']}/{row['offset']}"
        click.echo(f"{row['at']}  {row['stage']:<10}  {place}  {row['bytes']} bytes  {row['reason']}")
    if not found:
        click.echo("nothing was set aside")


@dead_letters.command()
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.pass_obj
def replay(workspace: Workspace, limit: int | None) -> None:
    """Put back what was set aside and has not been put back yet, oldest first."""
    settings = _settings(workspace)
    with kafka_errors(settings):
        done = asyncio.run(put_back(settings, limit))
    click.echo(f"{done} put back")
