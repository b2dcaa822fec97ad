"""`svc topics cat`: prints a topic's records as JSON lines."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from broker.client import name_of, open_consumer, records_before
from broker.errors import TopicAuthorizationFailedError
from broker.types import Consumer, Record, TopicPartition
from cli.command_groups import NearestGroup
from cli.console import servers_of
from cli.failures import fail, reported
from cli.projects import project_number
from cli.workspace import Workspace
from schemas import chunks, dead_letters, increments
from schemas.ids import hex64, issue_id
from schemas.json_values import decode_any
from schemas.settings import KafkaSettings, MigrateSettings
from schemas.times import iso, parse_iso
from schemas.topics import Topic

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def start_ms(text: str, now: datetime) -> int:
    """Unix milliseconds of an ISO time, or of an age such as `15m`, `2h`, `7d`. Raises ValueError."""
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        return int((now - timedelta(**{_UNITS[text[-1]]: int(text[:-1])})).timestamp() * 1000)
    return parse_iso(text)


def end_iso(text: str, now: datetime) -> str:
    """The ISO time after a span such as `15m`, `8h`, `7d` from now; any other text as it is."""
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        return iso(int((now + timedelta(**{_UNITS[text[-1]]: int(text[:-1])})).timestamp() * 1000))
    return text


def lines(topic: Topic, record: Record) -> Iterator[dict[str, Any]]:
    """The JSON objects of a record: one per event of a chunk.

    Raises ValueError (the base of msgspec's errors) for an invalid value.
    """
    position = {"partition": record.partition, "offset": record.offset, "at": iso(record.timestamp)}
    if topic is Topic.EVENTS:
        for event in chunks.decode_chunk(record.value or b""):
            yield position | _event(event)
    elif topic is Topic.GROUPED:
        yield from _grouped(position, chunks.decode_grouped(record.value or b""))
    elif (
        topic is Topic.DEAD_LETTERS and (put_back := dead_letters.replayed_before(record.headers)) is not None
    ):
        yield position | {"putBackBefore": put_back}
    elif topic is Topic.DEAD_LETTERS:
        letter, _ = dead_letters.from_headers(record.headers)
        yield position | {"deadLetter": msgspec.to_builtins(letter), "bytes": len(record.value or b"")}
    elif topic is Topic.SEEN:
        yield position | {"key": _text(record.key), "bytes": len(record.value or b"")}
    elif topic is Topic.ISSUE_DELTAS and record.value and increments.is_bundle(record.value):
        yield from _increments(position, record.value)
    else:
        value = decode_any(record.value) if record.value else None
        yield position | {"key": _text(record.key), "value": value}


def _event(event: chunks.ChunkEvent) -> dict[str, Any]:
    return {
        "projectId": str(event.project),
        "receivedAt": iso(event.received_ms),
        "sdk": event.sdk,
        "event": decode_any(event.payload),
    }


def _grouped(position: dict[str, Any], record: chunks.GroupedRecord) -> Iterator[dict[str, Any]]:
    for index, group in zip(record.kept, record.grouping_of, strict=True):
        grouping, project = record.groupings[group], record.projects[group]
        yield position | {
            "source": f"{record.partition}/{record.offset}",
            "position": index,
            "projectId": str(project),
            "issueId": hex64(issue_id(project, grouping.fingerprint)),
            "fingerprint": hex64(grouping.fingerprint),
            "grouping": {"version": grouping.version, "rule": grouping.rule, "parts": grouping.parts},
        }


def _increments(position: dict[str, Any], value: bytes) -> Iterator[dict[str, Any]]:
    for source in increments.decode_bundle(value):
        for increment in source.increments:
            yield position | {
                "source": f"{source.partition}/{source.offset}",
                "projectId": str(increment.project),
                "issueId": hex64(increment.issue),
                "fingerprint": hex64(increment.fingerprint),
                "events": increment.events,
            }


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "replace")


def _of_project(line: dict[str, Any], project: str) -> bool:
    value = line.get("value")
    known = (
        line.get("projectId")
        or (value.get("projectId") if isinstance(value, dict) else None)
        or line.get("key")
    )
    return known is not None and str(known).split("/")[0] == project


async def print_topic(settings: KafkaSettings, topic: Topic, since: int | None, project: str | None) -> int:
    """Print the current records of the topic; returns the number of invalid ones."""
    bad = 0
    async for record in records_since(settings, topic, since):
        bad += not _print(topic, record, project)
    return bad


async def records_since(
    settings: KafkaSettings, topic: Topic, since: int | None, wanted: Callable[[int], Iterable[int]] = range
) -> AsyncIterator[Record]:
    """The records from a time on, or all, up to the end.

    `wanted` are the partitions, given their number. Raises KafkaError.
    """
    async with open_consumer(settings) as consumer:
        name = name_of(settings, topic)
        known = consumer.partitions_for_topic(name) or await _fetch_partitions(consumer, name)
        partitions = [TopicPartition(name, partition) for partition in wanted(len(known))]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        await _seek(consumer, partitions, since)
        async for record in records_before(consumer, ends):
            yield record


async def _fetch_partitions(consumer: Consumer, name: str) -> set[int]:
    await consumer._client.add_topic(name)
    partitions: set[int] | None = consumer.partitions_for_topic(name)
    if name in consumer._client.cluster.unauthorized_topics:
        raise TopicAuthorizationFailedError(name)
    if not partitions:
        fail(f"there is no topic {name}: run `svc migrate`")
    return partitions


async def _seek(consumer: Consumer, partitions: list[TopicPartition], since: int | None) -> None:
    if since is None:
        await consumer.seek_to_beginning(*partitions)
        return
    offsets = await consumer.offsets_for_times(dict.fromkeys(partitions, since))
    for partition, offset in offsets.items():
        if offset is None:
            await consumer.seek_to_end(partition)
        else:
            consumer.seek(partition, offset.offset)


def _print(topic: Topic, record: Record, project: str | None) -> bool:
    try:
        for line in lines(topic, record):
            if project is None or _of_project(line, project):
                click.echo(json.dumps(line, ensure_ascii=False))
    except ValueError as error:
        click.echo(f"{record.topic}/{record.partition}/{record.offset}: {error}", err=True)
        return False
    return True


@click.group(cls=NearestGroup)
def topics() -> None:
    """Inspect the topics."""


@topics.command()
@click.argument("name", metavar="NAME", type=click.Choice([t.title for t in Topic]))
@click.option("--from", "since", metavar="TIME", help="Start time: ISO 8601, or an age such as 15m, 2h, 7d.")
@click.option("--project", help="Only records of the project with this id or name.")
@click.pass_obj
def cat(workspace: Workspace, name: str, since: str | None, project: str | None) -> None:
    """Print a topic's records, up to its current end, as JSON lines.

    NAME is the topic's name without the prefix: events, grouped, grouped-events, issue-deltas, issues,
    issue-activity, projects, outcomes, dead-letters or seen.
    """
    settings = servers_of(workspace, MigrateSettings)
    topic = next(t for t in Topic if t.title == name)
    try:
        begin = None if since is None else start_ms(since, datetime.now(UTC))
    except ValueError:
        raise click.BadParameter(
            "must be an ISO 8601 time with an offset, or an age such as 15m, 2h, 7d", param_hint="--from"
        ) from None
    with reported(settings):
        number = None if project is None else str(asyncio.run(project_number(settings, project)))
        bad = asyncio.run(print_topic(settings, topic, begin, number))
    if bad:
        sys.exit(1)
