"""Puts right what the tables lack by reading the topics again from their beginning: for `svc reconcile --repair`."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

from schemas.issues import decode_issue
from schemas.kafka import follow_projects, reading
from schemas.projects import ProjectRegistry
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.client import INSERT_SETTINGS, Client
from storage.complete import complete
from storage.erase.past import projects
from storage.records import ISSUES, issue_row, newest, table
from storage.writer.blocks import Block
from storage.writer.projects import RegistryRetention

_BLOCK_ROWS: Final = 10_000


async def replay_grouped(settings: WriterSettings, client: Client) -> dict[str, int]:
    """Insert every event of `grouped` that a table lacks; returns rows added or mended, by table.

    Events that are older than the topic's retention can't be brought back. Raises KafkaError and ClickHouseError.
    """
    registry = ProjectRegistry()
    done: dict[str, int] = {}
    async with _following(settings, registry), reading(settings, Topic.GROUPED) as consumer:
        block, seen = Block(RegistryRetention(registry)), dict[int, int]()
        async for record in _records(consumer):
            seen[record.partition] = block.feed(record, seen.get(record.partition, -1))
            if len(block) >= _BLOCK_ROWS:
                _complete(client, block, done)
                block = Block(RegistryRetention(registry))
        if len(block):
            _complete(client, block, done)
    return done


async def replay_issues(settings: WriterSettings, client: Client) -> int:
    """Write the newest record of every issue again; returns how many there are. Raises KafkaError and ClickHouseError.

    Issues of erased projects stay away.
    """
    gone = projects(client)
    async with reading(settings, Topic.ISSUES) as consumer:
        rows = [
            issue_row(decode_issue(record.value))
            async for record in _records(consumer)
            if record.value is not None
        ]
    rows = [row for row in rows if row[0] not in gone]
    kept = newest(rows, key=ISSUES.get_field_index("issue_id"), version=ISSUES.get_field_index("version"))
    for first in range(0, len(kept), _BLOCK_ROWS):
        part = table(ISSUES, kept[first : first + _BLOCK_ROWS])
        client.insert_arrow("issues", part, settings={**INSERT_SETTINGS, "insert_deduplicate": 0})
    return len(kept)


def _complete(client: Client, block: Block, done: dict[str, int]) -> None:
    for name, rows in complete(client, block.columns.table(), f"repair/{time.time_ns()}").rows.items():
        done[name] = done.get(name, 0) + rows


@asynccontextmanager
async def _following(settings: WriterSettings, registry: ProjectRegistry) -> AsyncIterator[None]:
    follower = follow_projects(settings, registry)
    task = asyncio.create_task(follower.run())
    try:
        await follower.loaded.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _records(consumer: AIOKafkaConsumer) -> AsyncIterator[Any]:
    """All records from the beginning to where the topic ends now."""
    places = consumer.assignment()
    ends = await consumer.end_offsets(places)
    while any([await consumer.position(place) < ends[place] for place in places]):
        for records in (await consumer.getmany(timeout_ms=500, max_records=200)).values():
            for record in records:
                yield record
