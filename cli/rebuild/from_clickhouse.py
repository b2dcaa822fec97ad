"""The processors' tables from what ClickHouse has stored: for logs that have expired, or are lost.

The processors must be stopped and the writer must have read everything: then ClickHouse holds what the logs brought up to known
positions, no less and no more, and counting can go on from there.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import click
from msgspec import Struct

from broker.client import administering, committed_offsets, name_of, reading, writing
from broker.consumer_lag import lags, readers
from broker.types import Consumer, TopicPartition
from cli.rebuild.dedup_log import IdKeys, entries
from cli.rebuild.issues import Covered, Sources, rebuilt
from grouping.fingerprint import culprit, fingerprint
from processors.grouper.dedup_log import DAY_MS, DeltasPosition, decode_position, deltas_key, encode
from processors.grouper.fingerprinter import decode_event, grouping_event
from schemas.chunks import SOURCE_HEADER
from schemas.errors import BadPayload
from schemas.issues import IssueRecord, encode_json
from schemas.payload import decompress
from schemas.settings import ProcessorsSettings, WriterSettings
from schemas.topics import Topic
from storage.client import Client, open_client
from storage.repair import rebuild_queries
from storage.writer.blocks import NoBlock, decode_manifest

Message = tuple[int, bytes, bytes]
"""Partition, key and value of a record."""
_PAYLOAD: Final = (
    "SELECT payload FROM payloads WHERE project_id = {project:UInt32} AND id = {id:UInt128} LIMIT 1"
)
_TOGETHER: Final = 1000


class Need(Struct, frozen=True):
    """The settings of the processes whose work is put together again."""

    processors: ProcessorsSettings
    writer: WriterSettings


class Issues(NamedTuple):
    """Records of the topic `issues`, and of the topic `seen` the positions in `issue-deltas` that go with them."""

    records: list[Message]
    positions: list[Message]


async def issues(need: Need) -> Issues:
    """The issues. Raises ClickException where ClickHouse isn't whole, KafkaError and ClickHouseError."""
    covered = await _covered(need)
    client = open_client(need.writer.clickhouse_url)
    try:
        sources = Sources(
            lambda project, fingerprints, at_ms: rebuild_queries.since(client, project, fingerprints, at_ms),
            lambda project, at_ms: rebuild_queries.releases_until(client, project, at_ms),
            _described(client),
        )
        made = rebuilt(
            rebuild_queries.counted(client),
            rebuild_queries.shown(client),
            rebuild_queries.changes(client),
            covered,
            sources,
        )
    finally:
        client.close()
    partitions = len(covered.events)
    records = [(int(one.id, 16) % partitions, one.id.encode(), encode_json(one)) for one in made]
    return Issues(records, _positions(covered.deltas, made))


async def no_issues(settings: ProcessorsSettings) -> Issues:
    """Nothing, and positions by which all that `issue-deltas` still holds is folded, however little it is. Raises KafkaError."""
    places = await _places(settings, name_of(settings, Topic.ISSUE_DELTAS))
    return Issues([], _positions({place.partition: -1 for place in places}, []))


async def folded(settings: ProcessorsSettings) -> dict[int, DeltasPosition]:
    """Up to where each partition of `issue-deltas` is folded, as the topic `seen` has it. Raises KafkaError."""
    found: dict[int, DeltasPosition] = {}
    table = await _places(settings, name_of(settings, Topic.SEEN))
    async with reading(settings) as consumer:
        ends = await consumer.end_offsets(table)
        consumer.assign(table)
        await consumer.seek_to_beginning(*table)
        while any([await consumer.position(place) < ends[place] for place in table]):
            for place, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    if record.key == deltas_key(place.partition) and record.value:
                        found[place.partition] = decode_position(record.value)
    return found


def position_records(positions: Mapping[int, DeltasPosition]) -> list[Message]:
    """Positions as records of the topic `seen`."""
    return [(p, deltas_key(p), encode(position)) for p, position in positions.items()]


def _positions(deltas: Mapping[int, int], made: Iterable[IssueRecord]) -> list[Message]:
    """Positions with the sums of these issues: those of before would find some missing, or take missing ones for there."""
    sums = dict.fromkeys(deltas, (0, 0))
    for one in made:
        partition = int(one.id, 16) % len(deltas)
        issues, versions = sums[partition]
        sums[partition] = (issues + 1, versions + one.version)
    return position_records({p: DeltasPosition(deltas[p], *sums[p]) for p in deltas})


async def seen(need: Need) -> list[Message]:
    """The entries of the topic `seen`. Raises like `issues`."""
    covered = await _covered(need)
    client = open_client(need.writer.clickhouse_url)
    try:
        days = need.processors.dedupe_days
        # One more than the window has: the newest may be that of an edge whose clock was wrong.
        received = rebuild_queries.received_days(client, days + 2) or [0]
        known = IdKeys(len(covered.events), received, days)
        known.add(rebuild_queries.ids(client, received[-1] * DAY_MS))
    finally:
        client.close()
    return [
        (partition, key, value)
        for partition, last in covered.events.items()
        for key, value in entries(partition, last, known.blocks(partition), received[0])
    ]


async def write(settings: ProcessorsSettings, topic: Topic, messages: Iterable[Message]) -> int:
    """Append records; returns how many. Raises KafkaError."""
    count = 0
    async with writing(settings, enable_idempotence=False, linger_ms=20, max_batch_size=1 << 20) as producer:
        sent = []
        for partition, key, value in messages:
            sent.append(await producer.send(name_of(settings, topic), value, key, partition=partition))
            count += 1
            if len(sent) == _TOGETHER:
                await asyncio.gather(*sent)
                sent.clear()
        await asyncio.gather(*sent)
    return count


async def _covered(need: Need) -> Covered:
    """Up to where the logs are in ClickHouse. Raises ClickException where the writer has something left to read."""
    groups = readers(need.processors.processors_app, need.writer.writer_group)
    del groups[need.processors.processors_app]
    for lag in await lags(need.writer, groups):
        raise click.ClickException(
            f"the writer is {lag.records:,} records behind on {lag.topic}: let it run until `svc reconcile` says that it isn't"
        )
    async with reading(need.processors) as consumer:
        events = await _sources(need, consumer)
    return Covered(events, await _deltas(need, list(events)))


async def _sources(need: Need, consumer: Consumer) -> dict[int, int]:
    """The last source offset that the writer has taken of each partition, -1 where there was none."""
    topic = name_of(need.writer, Topic.GROUPED)
    places = await _places(need.processors, topic)
    ends = await consumer.end_offsets(places)
    found: dict[int, int] = {}
    committed = await _commits(need.processors, need.writer.writer_group, places)
    for place in places:
        _, text = committed[place]
        state = decode_manifest(text)
        seen = state.source_offset if isinstance(state, NoBlock) else -1
        if seen < 0 and ends[place]:
            seen = await _last_source(consumer, place, ends[place])
        found[place.partition] = seen
    return found


async def _last_source(consumer: Consumer, place: TopicPartition, end: int) -> int:
    begin = (await consumer.beginning_offsets([place]))[place]
    if begin >= end:
        raise click.ClickException(
            f"nothing says up to where {place.topic}/{place.partition} was written: its records and the writer's position are lost"
        )
    consumer.assign([place])
    consumer.seek(place, end - 1)
    record = await consumer.getone(place)
    return int(dict(record.headers)[SOURCE_HEADER].partition(b"/")[2])


async def _deltas(need: Need, partitions: list[int]) -> dict[int, int]:
    """The last offset of `issue-deltas` that the processors have folded: by their own record, else by what they committed."""
    topic = name_of(need.processors, Topic.ISSUE_DELTAS)
    places = [TopicPartition(topic, p) for p in partitions]
    committed = await _commits(need.processors, need.processors.processors_app, places)
    found = {place.partition: max(-1, committed[place][0] - 1) for place in places}
    return found | {p: position.offset for p, position in (await folded(need.processors)).items()}


async def _commits(
    settings: ProcessorsSettings, group: str, places: list[TopicPartition]
) -> dict[TopicPartition, tuple[int, str]]:
    """What a group has committed: offset (-1 for none) and metadata."""
    async with administering(settings) as admin:
        found = await committed_offsets(admin, group, places)
    return {place: (found[place].offset, found[place].metadata or "") for place in places}


async def _places(settings: ProcessorsSettings, topic: str) -> list[TopicPartition]:
    async with administering(settings) as admin:
        found = await admin.describe_topics([topic])
    places = [TopicPartition(topic, p["partition"]) for p in found[0]["partitions"]]
    if not places:
        raise click.ClickException(f"there is no topic {topic}: run `svc migrate`")
    return sorted(places)


def _described(client: Client) -> Callable[[int, bytes], tuple[str, tuple[str, ...]]]:
    def described(project: int, event: bytes) -> tuple[str, tuple[str, ...]]:
        parameters = {"project": project, "id": int.from_bytes(event, "big")}
        rows = client.query(_PAYLOAD, parameters=parameters).result_rows
        try:
            form = grouping_event(decode_event(decompress(rows[0][0])))
        except (IndexError, BadPayload, ValueError):
            return "", ()
        return culprit(form), fingerprint(form).parts

    return described
