"""Rebuilds the processors' tables from ClickHouse, if the logs have expired or are lost.

The processors must be stopped and the writer must have read everything: then ClickHouse has exactly the content of the
logs up to known positions, and counting can resume from there.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from broker.client import committed_offsets, name_of, open_admin, open_consumer, open_producer, records_before
from broker.consumer_lag import lags, readers_of
from broker.types import Consumer, TopicPartition
from grouping.fingerprint import culprit, fingerprint
from processors.aggregator.position import (
    DeltasPosition,
    decode_position,
    deltas_key,
    encode_position,
)
from processors.grouper.event_outline import decode_event, grouping_event
from rebuild.rebuilt_ids import IdKeys, entries
from rebuild.rebuilt_issues import Covered, Sources, Unread, rebuilt
from rebuild.rebuilt_merges import Pair
from schemas.chunks import SOURCE_HEADER, decode_chunk
from schemas.errors import BadPayload, RebuildRefused
from schemas.issues import IssueRecord, encode_json
from schemas.settings import ProcessorsSettings
from schemas.times import DAY_MS, iso
from schemas.topics import Topic
from storage.client import Client
from storage.exactly_once.block_plan import NoBlock, decode_plan
from storage.maintain import rebuild_queries
from storage.shards import open_servers
from storage.tables.packs import unpacked

Message = tuple[int, bytes | None, bytes]
"""Partition, key and value of a record."""
PAYLOAD: Final = (
    "SELECT pack, payload FROM payloads WHERE project_id = {project:UInt32} AND id = {id:UInt128} LIMIT 1"
)
_BATCH: Final = 1000


class Issues(NamedTuple):
    """Records of the topic `issues`, and the matching positions in `issue-deltas` for the topic `seen`.

    `undone` are merges and unmerges that had not ended, with their `activities`.
    """

    records: list[Message]
    positions: list[Message]
    undone: Sequence[Pair] = ()
    activities: Sequence[Message] = ()


async def issues(settings: ProcessorsSettings) -> Issues:
    """The issues. Raises RebuildRefused if ClickHouse is incomplete or changes, KafkaError and ClickHouseError."""
    covered = await _covered(settings, Topic.GROUPED, Topic.ISSUES, Topic.ISSUE_ACTIVITY)
    covered = covered._replace(unread=await _unread(settings, covered.deltas))
    with open_servers(settings) as servers:
        client = servers[0].whole
        erased = rebuild_queries.erased(client)
        sources = Sources(
            lambda project, fingerprints, at_ms: rebuild_queries.since(client, project, fingerprints, at_ms),
            lambda project, at_ms: rebuild_queries.releases_until(client, project, at_ms),
            _described(client),
        )
        new = rebuilt(
            rebuild_queries.counted(client),
            # A row may be on some of the servers only: an earlier rebuild emptied its topic before the others had it.
            chain.from_iterable(rebuild_queries.shown(server.whole) for server in servers),
            rebuild_queries.changes(client),
            covered,
            sources,
            iso(time.time_ns() // 1_000_000),
            erased,
        )
        # An event that is deleted between two of these statements counts in neither.
        if rebuild_queries.erased(client) != erased:
            raise RebuildRefused("an erasure deletes events now: repeat this once it has ended")

    def message(issue: str, value: bytes) -> Message:
        return int(issue, 16) % len(covered.events), issue.encode(), value

    return Issues(
        [message(one.id, encode_json(one)) for one in new.records],
        delta_positions(covered.deltas, new.records),
        new.undone,
        [message(one.issue, encode_json(one)) for one in new.activities],
    )


async def no_issues(settings: ProcessorsSettings) -> Issues:
    """No issues, and positions from which the remaining `issue-deltas` are folded completely. Raises KafkaError."""
    tps = await _partitions(settings, name_of(settings, Topic.ISSUE_DELTAS))
    return Issues([], delta_positions({tp.partition: -1 for tp in tps}, []))


async def folded(settings: ProcessorsSettings) -> dict[int, DeltasPosition]:
    """The folded position of each partition of `issue-deltas`, from the topic `seen`. Raises KafkaError."""
    positions: dict[int, DeltasPosition] = {}
    table = await _partitions(settings, name_of(settings, Topic.SEEN))
    async with open_consumer(settings) as consumer:
        ends = await consumer.end_offsets(table)
        consumer.assign(table)
        await consumer.seek_to_beginning(*table)
        while any([await consumer.position(tp) < ends[tp] for tp in table]):
            for tp, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    if record.key == deltas_key(tp.partition) and record.value:
                        positions[tp.partition] = decode_position(record.value)
    return positions


def position_records(positions: Mapping[int, DeltasPosition]) -> list[Message]:
    """Positions as records of the topic `seen`."""
    return [(p, deltas_key(p), encode_position(position)) for p, position in positions.items()]


def delta_positions(deltas: Mapping[int, int], records: Iterable[IssueRecord]) -> list[Message]:
    """Positions at these offsets, with the checksums of these issues; the old sums would not match the new table."""
    sums = dict.fromkeys(deltas, (0, 0))
    for record in records:
        partition = int(record.id, 16) % len(deltas)
        issues, versions = sums[partition]
        sums[partition] = (issues + 1, versions + record.version)
    return position_records({p: DeltasPosition(deltas[p], *sums[p]) for p in deltas})


async def seen(settings: ProcessorsSettings) -> list[Message]:
    """The entries of the topic `seen`. Raises like `issues`."""
    # Only events are read; `svc rebuild all` has just written issues that the writer need not have read.
    covered = await _covered(settings, Topic.GROUPED)
    with open_servers(settings) as servers:
        client = servers[0].whole
        days = settings.dedupe_days
        # One more day than the window: the newest may come from an edge with a wrong clock.
        received = rebuild_queries.received_days(client, days + 2) or [0]
        known = IdKeys(len(covered.events), received, days)
        known.add_events(rebuild_queries.ids(client, received[-1] * DAY_MS))
    return [
        (partition, key, value)
        for partition, last in covered.events.items()
        for key, value in entries(partition, last, known.blocks(partition), received[0])
    ]


async def none_interrupted(settings: ProcessorsSettings) -> None:
    """Raise RebuildRefused if the processors ended in the middle of a batch, or if the writer is behind.

    Its events are stored, its counts may be missing. A writer that is behind may not have its events yet.
    """
    tps = await _partitions(settings, name_of(settings, Topic.EVENTS))
    committed = await _commits(settings, settings.processors_app, tps)
    covered = await _covered(settings, Topic.GROUPED)
    if any(committed[tp][0] <= covered.events.get(tp.partition, -1) for tp in tps):
        raise RebuildRefused(
            "the processors have ended in the middle of a batch, whose counts may be missing: "
            "start them once and stop them with SIGTERM, or, where they can't start, rebuild `all`"
        )


async def write(settings: ProcessorsSettings, topic: Topic, messages: Iterable[Message]) -> int:
    """Append records; returns how many. Raises KafkaError."""
    count = 0
    async with open_producer(
        settings, enable_idempotence=False, linger_ms=20, max_batch_size=1 << 20
    ) as producer:
        sent = []
        for partition, key, value in messages:
            sent.append(await producer.send(name_of(settings, topic), value, key, partition=partition))
            count += 1
            if len(sent) == _BATCH:
                await asyncio.gather(*sent)
                sent.clear()
        await asyncio.gather(*sent)
    return count


async def _covered(settings: ProcessorsSettings, *topics: Topic) -> Covered:
    """The positions up to which ClickHouse has the logs.

    Raises RebuildRefused if the writer is behind on one of these topics.
    """
    groups = readers_of(settings)
    del groups[settings.processors_app]
    wanted = {group: [topic for topic in read if topic in topics] for group, read in groups.items()}
    for lag in await lags(settings, wanted):
        raise RebuildRefused(
            f"the writer is {lag.records:,} records behind on {lag.topic}: "
            "let it run until `svc reconcile` reports no lag"
        )
    async with open_consumer(settings) as consumer:
        events = await source_ends(settings, consumer)
    return Covered(events, await _deltas(settings, list(events)), Unread())


async def source_ends(settings: ProcessorsSettings, consumer: Consumer) -> dict[int, int]:
    """The last source offset that the writer has stored of each partition, -1 for none."""
    topic = name_of(settings, Topic.GROUPED)
    tps = await _partitions(settings, topic)
    ends = await consumer.end_offsets(tps)
    offsets: dict[int, int] = {}
    committed = await _commits(settings, settings.writer_group, tps)
    for tp in tps:
        _, text = committed[tp]
        state = decode_plan(text)
        seen = state.source_offset if isinstance(state, NoBlock) else -1
        if seen < 0 and ends[tp]:
            seen = await _last_source(settings, consumer, tp, ends[tp])
        offsets[tp.partition] = seen
    return offsets


async def _last_source(settings: ProcessorsSettings, consumer: Consumer, tp: TopicPartition, end: int) -> int:
    begin = (await consumer.beginning_offsets([tp]))[tp]
    if begin >= end:
        return await _last_stored(settings, consumer, tp.partition)
    consumer.assign([tp])
    consumer.seek(tp, end - 1)
    record = await consumer.getone(tp)
    return int(dict(record.headers)[SOURCE_HEADER].partition(b"/")[2])


async def _last_stored(settings: ProcessorsSettings, consumer: Consumer, partition: int) -> int:
    """The same from the stored rows, if the records of `grouped` have expired and the writer's position is lost.

    Up to the processors' commit all is stored. Behind it they may have written some of `events` before they
    ended: a record is stored if the stored event of one of its ids was received when this copy was, for of
    other copies of an id the first is stored.
    """
    events = TopicPartition(name_of(settings, Topic.EVENTS), partition)
    committed = (await _commits(settings, settings.processors_app, [events]))[events][0]
    end = (await consumer.end_offsets([events]))[events]
    first: int = max(committed, (await consumer.beginning_offsets([events]))[events])
    copies = dict[int, set[tuple[int, bytes, int]]]()
    consumer.assign([events])
    consumer.seek(events, first)
    while await consumer.position(events) < end:
        for records in (await consumer.getmany(timeout_ms=500)).values():
            for record in records:
                # An undecodable record is a dead letter.
                with suppress(BadPayload, msgspec.DecodeError):
                    chunk = decode_chunk(record.value or b"")
                    copies[record.offset] = {(one.project, one.id, one.received_ms) for one in chunk}
    wanted = set[tuple[int, bytes, int]]().union(*copies.values())
    if not wanted:
        return first - 1
    with open_servers(settings) as servers:
        stored = wanted.intersection(
            rebuild_queries.ids(servers[0].whole, min(received for *_, received in wanted))
        )
    return max((offset for offset, found in copies.items() if found & stored), default=first - 1)


async def _deltas(settings: ProcessorsSettings, partitions: list[int]) -> dict[int, int]:
    """The last folded offset of `issue-deltas`: from the processors' record, else from their commits."""
    topic = name_of(settings, Topic.ISSUE_DELTAS)
    tps = [TopicPartition(topic, p) for p in partitions]
    committed = await _commits(settings, settings.processors_app, tps)
    offsets = {tp.partition: max(-1, committed[tp][0] - 1) for tp in tps}
    return offsets | {p: position.offset for p, position in (await folded(settings)).items()}


async def _unread(settings: ProcessorsSettings, deltas: Mapping[int, int]) -> Unread:
    """The records of `issue-deltas` behind these offsets."""
    topic = name_of(settings, Topic.ISSUE_DELTAS)
    tps = [TopicPartition(topic, p) for p in deltas]
    unread = Unread()
    async with open_consumer(settings) as consumer:
        begins, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        consumer.assign(tps)
        for tp in tps:
            consumer.seek(tp, max(begins[tp], deltas[tp.partition] + 1))
        async for record in records_before(consumer, ends):
            with suppress(msgspec.DecodeError):
                if record.value:
                    unread.add(record.value)
    return unread


async def _commits(
    settings: ProcessorsSettings, group: str, tps: list[TopicPartition]
) -> dict[TopicPartition, tuple[int, str]]:
    """A group's commits: offset (-1 for none) and metadata."""
    async with open_admin(settings) as admin:
        commits = await committed_offsets(admin, group, tps)
    return {tp: (commits[tp].offset, commits[tp].metadata or "") for tp in tps}


async def _partitions(settings: ProcessorsSettings, topic: str) -> list[TopicPartition]:
    async with open_admin(settings) as admin:
        descriptions = await admin.describe_topics([topic])
    tps = [TopicPartition(topic, p["partition"]) for p in descriptions[0]["partitions"]]
    if not tps:
        raise RebuildRefused(f"there is no topic {topic}: run `svc migrate`")
    return sorted(tps)


def _described(client: Client) -> Callable[[int, bytes], tuple[str, tuple[str, ...]]]:
    def described(project: int, event: bytes) -> tuple[str, tuple[str, ...]]:
        number = int.from_bytes(event, "big")
        try:
            pack, payload = _payload_row(client, project, number)
            if pack not in (0, number):
                _, payload = _payload_row(client, project, pack)
            sent = unpacked(payload)[event] if pack else payload
            grouping = grouping_event(decode_event(sent))
        except (LookupError, BadPayload, ValueError):
            return "", ()
        return culprit(grouping), fingerprint(grouping).parts

    return described


def _payload_row(client: Client, project: int, event: int) -> tuple[int, bytes]:
    """Pack and payload of an event. Raises IndexError if it has none."""
    parameters = {"project": project, "id": event}
    rows = client.query(PAYLOAD, parameters=parameters, column_formats={"payload": "bytes"}).result_rows
    return int(rows[0][0]), rows[0][1]
