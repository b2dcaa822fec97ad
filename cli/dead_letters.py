"""`svc dead-letters`: lists dead-lettered records and replays them after their cause is fixed.

The replay position is the committed offset of a consumer group and a marker record in the topic, because the offset
expires before the dead letters do. Replay is at-least-once; consumers deduplicate by event id.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click

from broker.client import name_of, reading, records_before, writing
from broker.rights import DEAD_LETTERS_GROUP
from broker.types import Consumer, Record, TopicPartition
from cli.console import kafka_errors, need_kafka, print_json, settings_of
from cli.groups import NearestGroup
from cli.workspace import Workspace
from schemas.dead_letters import DeadLetter, from_headers, replay_marker, replayed_before
from schemas.settings import KafkaSettings, MigrateSettings
from schemas.topics import Topic

Letter = tuple[DeadLetter, list[tuple[str, bytes]], Record]


@asynccontextmanager
async def _reader(settings: KafkaSettings) -> AsyncIterator[tuple[Consumer, TopicPartition]]:
    async with reading(settings, group_id=settings.topic_prefix + DEAD_LETTERS_GROUP) as consumer:
        tp = TopicPartition(name_of(settings, Topic.DEAD_LETTERS), 0)
        consumer.assign([tp])
        yield consumer, tp


async def _letters(consumer: Consumer, tp: TopicPartition, *, everything: bool) -> AsyncIterator[Letter]:
    """Dead letters up to the current end: all, or those not replayed yet."""
    first = (await consumer.beginning_offsets([tp]))[tp]
    begin = first if everything else await _replay_position(consumer, tp, first)
    async for record in _records(consumer, tp, begin):
        if replayed_before(record.headers) is not None:
            continue
        try:
            letter, headers = from_headers(record.headers)
        except ValueError as error:
            click.echo(f"{record.topic}/{record.partition}/{record.offset}: {error}", err=True)
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


async def _rows(settings: KafkaSettings, *, everything: bool) -> list[dict[str, Any]]:
    async with _reader(settings) as (consumer, tp):
        return [_row(letter) async for letter in _letters(consumer, tp, everything=everything)]


async def put_back(settings: KafkaSettings, limit: int | None) -> int:
    """Write dead letters back to their topics, in order, each once; returns how many. Raises KafkaError."""
    done = after = 0
    async with _reader(settings) as (consumer, tp), writing(settings) as producer:
        try:
            async for letter, headers, record in _letters(consumer, tp, everything=False):
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


def _row(letter: Letter) -> dict[str, Any]:
    dead_letter, _, record = letter
    return {
        "at": dead_letter.at,
        "stage": dead_letter.stage,
        "topic": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "projectId": dead_letter.project_id or None,
        "reason": dead_letter.reason,
        "bytes": len(record.value or b""),
    }


def _settings(workspace: Workspace) -> MigrateSettings:
    settings = settings_of(workspace, MigrateSettings)
    need_kafka(settings.kafka_bootstrap)
    return settings


@click.group(cls=NearestGroup)
def dead_letters() -> None:
    """Records that could not be processed."""


@dead_letters.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that were replayed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def list_(workspace: Workspace, everything: bool, as_json: bool) -> None:
    """List dead letters, their sources and reasons."""
    settings = _settings(workspace)
    with kafka_errors(settings):
        rows = asyncio.run(_rows(settings, everything=everything))
    if as_json:
        print_json({"deadLetters": rows})
        return
    for row in rows:
        source = f"{row['topic']}/{row['partition']}/{row['offset']}"
        click.echo(f"{row['at']}  {row['stage']:<10}  {source}  {row['bytes']} bytes  {row['reason']}")
    if not rows:
        click.echo("no dead letters")


@dead_letters.command()
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number.")
@click.pass_obj
def replay(workspace: Workspace, limit: int | None) -> None:
    """Replay dead letters that were not replayed yet, oldest first."""
    settings = _settings(workspace)
    with kafka_errors(settings):
        done = asyncio.run(put_back(settings, limit))
    click.echo(f"{done} replayed")
