"""Restores missing rows by re-reading the topics from their beginning, for `svc reconcile --repair`.

Events have one way into their tables, the writer: it gets the missing ones again. Of `grouped` only records
that the writer has committed are read, since it inserts its planned block and later records anyway. Other
tables collapse repeated rows.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from datetime import date
from typing import Final

import pyarrow as pa

from broker.client import committed_offsets, open_admin, open_consumer, open_producer, records_before
from broker.types import Consumer, Producer, Record, TopicPartition
from schemas.issues import decode_issue
from schemas.settings import PipelineSettings
from schemas.topics import Topic
from storage.client import INSERT_SETTINGS, Client
from storage.exactly_once.blocks import Block
from storage.exactly_once.missing_rows import missing
from storage.exactly_once.rejections import sent_again
from storage.exactly_once.source_values import SourceValues, open_source_values
from storage.maintain.erase.purge import purge
from storage.maintain.reconcile.dead_lettered import DeadLettered, dead_lettered
from storage.shards import Servers
from storage.tables.erased import projects
from storage.tables.record_rows import ISSUES, Row, issue_row, newest_issues, table
from storage.tables.record_topics import RECORD_TOPICS

_BLOCK_ROWS: Final = 10_000
_ALL_STORED: Final = 1 << 62
_DELETED_AT_ONCE: Final = 5_000
REMOVED: Final = "SELECT issue_id FROM issues FINAL WHERE deleted = 1"
"""Issues that a tombstone of the topic hides."""


async def send_missing(settings: PipelineSettings, servers: Servers, today: date) -> dict[str, int]:
    """Send the events again that the writer has stored and a table lacks; returns how many, by table.

    The writer completes them by ids, so it stores once any that it also stores meanwhile. Events older than
    the topic's retention can't be restored, and dead letters are left to their own replay. Raises KafkaError
    and ClickHouseError.
    """
    sent = Counter[str]()
    async with (
        open_consumer(settings, Topic.GROUPED) as consumer,
        open_producer(settings) as producer,
    ):
        written = await _written(settings, consumer)
        # Read after the writer's commits: records refused before them are there.
        dead = await dead_lettered(settings)
        for server in servers:
            own = server.shard.partitions_owned(tp.partition for tp in written)
            ends = {tp: end for tp, end in written.items() if tp.partition in own}
            async with open_source_values(settings, own) as sources:
                await _send_missing(server.own, consumer, sources, producer, ends, dead, sent, today)
    return {table: count for table, count in sent.items() if count}


async def _send_missing(
    client: Client,
    consumer: Consumer,
    sources: SourceValues,
    producer: Producer,
    ends: Mapping[TopicPartition, int],
    dead: DeadLettered,
    sent: Counter[str],
    today: date,
) -> None:
    """Resend the records that the server of these partitions lacks."""
    block, seen = Block(), dict[int, int]()

    async def send() -> None:
        lacking = missing(client, block.columns.table(), today)
        dead.read(block.records)
        dead.put_back(block.put_back)
        events, payloads = (keys - dead.among(keys) for keys in (lacking.events, lacking.payloads))
        sent.update(events=len(events), payloads=len(payloads))
        wanted = events | payloads
        for part in block.records:
            if not wanted:
                break
            value, headers, keys = sent_again(part, wanted)
            if keys:
                await producer.send_and_wait(
                    part.record.topic, value, partition=part.record.partition, headers=list(headers)
                )
            wanted -= keys

    async for record in records_before(consumer, ends):
        [source] = await sources.of([record])
        seen[record.partition] = block.feed(
            record, source, seen.get(record.partition, -1), verify_until=_ALL_STORED
        )
        if len(block) >= _BLOCK_ROWS:
            await send()
            block = Block()
    if len(block):
        await send()


async def replay_issues(settings: PipelineSettings, client: Client) -> int:
    """Insert the newest record of every issue; returns their number.

    Records that a tombstone has removed are written to the topic again while it still has them. Issues of
    erased projects are skipped, and those whose record the topic no longer has. An issue that was removed and
    rebuilt may have a lower version than its rows: they are deleted. Raises KafkaError, ClickHouseError and
    MutationFails.
    """
    rows, removed = await _issue_rows(settings, client)
    if removed:
        await _put_back(settings, client, removed)
        rows, _ = await _issue_rows(settings, client)
    number = ISSUES.get_field_index("issue_id")
    marked = {row[0] for row in client.query(REMOVED).result_rows}
    rebuilt = sorted(marked & {row[number] for row in rows})
    for first in range(0, len(rebuilt), _DELETED_AT_ONCE):
        ids = ", ".join(map(str, rebuilt[first : first + _DELETED_AT_ONCE]))
        purge(client, {"issues": f"issue_id IN ({ids})"}, str(uuid.uuid4()), once=True)
    if rebuilt:
        # Rows that the writer inserted before the deletion are in the topic.
        rows, _ = await _issue_rows(settings, client)
    for first in range(0, len(rows), _BLOCK_ROWS):
        _insert((client,), "issues", table(ISSUES, rows[first : first + _BLOCK_ROWS]))
    return len(rows)


async def _put_back(settings: PipelineSettings, client: Client, removed: Set[bytes]) -> None:
    """Write the newest record of each removed issue again, unless its project is erased.

    Its processor notices the foreign record at its next write, and starts again with the topic's content of
    that time. A record that the processor has replaced meanwhile is older, and every reader drops it.
    """
    erased, newest_of = projects(client), dict[bytes, tuple[int, Record]]()
    async with open_consumer(settings, Topic.ISSUES) as consumer, open_producer(settings) as producer:
        async for record in records_before(consumer, await consumer.end_offsets(consumer.assignment())):
            if record.value is None or record.key not in removed:
                continue
            with suppress(ValueError):  # dead-lettered by the writer
                issue = decode_issue(record.value)
                if int(issue.project_id) in erased:
                    continue
                if record.key not in newest_of or issue.version >= newest_of[record.key][0]:
                    newest_of[record.key] = issue.version, record
        for _, record in newest_of.values():
            await producer.send_and_wait(record.topic, record.value, record.key, record.partition)


async def _issue_rows(settings: PipelineSettings, client: Client) -> tuple[list[Row], set[bytes]]:
    """The newest row of each issue, and the keys whose last record is a tombstone."""
    erased = projects(client)
    async with open_consumer(settings, Topic.ISSUES) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        by_key: dict[bytes, list[Row]] = {}
        removed: set[bytes] = set()
        async for record in records_before(consumer, ends):
            if record.value is None:
                by_key.pop(record.key, None)
                removed.add(record.key)
                continue
            removed.discard(record.key)
            with suppress(ValueError):  # dead-lettered by the writer
                row = issue_row(decode_issue(record.value))
                by_key[record.key] = newest_issues([*by_key.get(record.key, ()), row])
    return [row for rows in by_key.values() for row in rows if row[0] not in erased], removed


async def replay_records(settings: PipelineSettings, clients: Sequence[Client], name: str) -> int:
    """Insert all records of `outcomes`, `issue_activity` or `changes` on each server; returns the number of rows.

    The tables deduplicate rows. Records of erased projects are skipped. Raises KafkaError and
    ClickHouseError.
    """
    [kind] = [kind for kind in RECORD_TOPICS if kind.table == name]
    erased, rows, done = set[int]().union(*map(projects, clients)), list[Row](), 0
    async with open_consumer(settings, kind.topic) as consumer:
        async for record in records_before(consumer, await consumer.end_offsets(consumer.assignment())):
            with suppress(ValueError):  # dead-lettered by the writer
                rows += [row for row in kind.rows(record.value or b"") if row[0] not in erased]
            if len(rows) >= _BLOCK_ROWS:
                _insert(clients, name, table(kind.schema, rows))
                done, rows = done + len(rows), []
    if rows:
        _insert(clients, name, table(kind.schema, rows))
    return done + len(rows)


def _insert(clients: Sequence[Client], name: str, rows: pa.Table) -> None:
    for client in clients:
        client.insert_arrow(name, rows, settings=dict(INSERT_SETTINGS))


async def _written(settings: PipelineSettings, consumer: Consumer) -> dict[TopicPartition, int]:
    """By partition of `grouped`, the offset before which all records are stored; a planned block is not."""
    async with open_admin(settings) as admin:
        committed = await committed_offsets(admin, settings.writer_group, consumer.assignment())
    ends = await consumer.end_offsets(committed)
    return {tp: stored_before(at.offset, ends[tp]) for tp, at in committed.items()}


def stored_before(committed: int, end: int) -> int:
    """The offset before which the writer has stored all records of a partition.

    `committed` is the writer's commit (-1 for none), `end` the partition's end. A commit beyond the end
    belongs to a topic that was since recreated, and is ignored.
    """
    return committed if 0 <= committed <= end else 0
