"""Rebuilds tables of the processors, from the logs if they are complete, else from ClickHouse.

From the logs: the table is emptied, and the processors recreate it at their next start, `seen` from `events`,
`issues` from `issue-deltas` with the commands in it. Records forwarded again carry their source position and
are dropped downstream. From ClickHouse: see `rebuild.from_clickhouse`.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final

from broker.client import name_of, open_admin, open_consumer
from broker.errors import TopicMissing
from broker.topics import empty_topic
from broker.types import Admin
from rebuild.from_clickhouse import (
    folded,
    issues,
    no_issues,
    none_interrupted,
    position_records,
    seen,
    write,
)
from schemas.errors import RebuildRefused
from schemas.settings import ProcessorsSettings
from schemas.topics import Topic

SESSIONS: Final = 1.5
"""Sessions after which an ended worker is no longer a member of its group."""
LOGS: Final = {"issues": Topic.ISSUE_DELTAS, "seen": Topic.EVENTS}


async def count_members(admin: Admin, group: str) -> int:
    """The number of running workers."""
    [response] = await admin.describe_consumer_groups([group])
    return sum(len(description["members"]) for description in response.to_object()["groups"])


async def _wait_until_empty(admin: Admin, group: str, seconds: float) -> None:
    """Wait until the sessions of ended workers have expired."""
    end = time.monotonic() + seconds
    while members := await count_members(admin, group):
        if time.monotonic() > end:
            raise RebuildRefused(
                f"processors are running (members of their group: {members}): stop them first"
            )
        await asyncio.sleep(0.5)


async def none_working(settings: ProcessorsSettings) -> None:
    """Raises RebuildRefused while workers run: they would write their state back."""
    async with open_admin(settings) as admin:
        await _wait_until_empty(admin, settings.processors_app, SESSIONS * settings.kafka_session_seconds)


async def empty(settings: ProcessorsSettings, topic: Topic) -> int:
    """Delete all records of a compacted topic; returns their maximum number.

    Raises RebuildRefused while workers run.
    """
    await none_working(settings)
    try:
        return await empty_topic(settings, name_of(settings, topic))
    except TopicMissing as error:
        raise RebuildRefused(str(error)) from None


async def _is_whole(settings: ProcessorsSettings, topic: Topic) -> bool:
    """Whether no record of a log has expired."""
    async with open_consumer(settings, topic) as consumer:
        return not any((await consumer.beginning_offsets(consumer.assignment())).values())


async def _is_emptied(settings: ProcessorsSettings, topic: Topic) -> bool:
    """Whether a log has a partition of which every record has expired."""
    async with open_consumer(settings, topic) as consumer:
        begins = await consumer.beginning_offsets(consumer.assignment())
        ends = await consumer.end_offsets(consumer.assignment())
    return any(begins[tp] == ends[tp] > 0 for tp in ends)


async def _from_clickhouse(settings: ProcessorsSettings, table: str) -> bool:
    """Whether the topics are not enough. For `seen`, `grouped` must say how the last events were decided."""
    if not await _is_whole(settings, LOGS[table]):
        return True
    return table == "seen" and await _is_emptied(settings, Topic.GROUPED)


async def run_rebuild(
    settings: ProcessorsSettings, tables: Collection[str], source: str | None, say: Callable[[str], None]
) -> None:
    """Rebuild these tables from the source; None is Kafka while it has everything, else ClickHouse.

    `say` gets a line for each table, and for each merge or unmerge that had not ended. Raises RebuildRefused,
    KafkaError and ClickHouseError.
    """
    stored = source == "clickhouse"
    if source is None:
        stored = any([await _from_clickhouse(settings, table) for table in tables])
    if stored and not settings.clickhouse_url:
        raise RebuildRefused(
            "older records of the log have expired: set SVC_CLICKHOUSE_URL, or use --from topics to ignore them"
        )
    await none_working(settings)
    if stored and "issues" not in tables:
        await none_interrupted(settings)
    for table in tables:
        await none_working(settings)
        if table == "issues":
            deleted, written = await _issues(settings, say, stored=stored)
        else:
            deleted, written = await _seen(settings, stored=stored)
        result = (
            f", {written} written from ClickHouse" if stored else "; the processors rebuild it at their start"
        )
        say(f"{table}: {deleted} records removed{result}")


async def _issues(
    settings: ProcessorsSettings, say: Callable[[str], None], *, stored: bool
) -> tuple[int, int]:
    """Records removed and written. Positions are written last: before, the processors detect the incomplete table."""
    new = await (issues(settings) if stored else no_issues(settings))
    for whole, part in new.undone:
        say(f"issues: {part} is no part of {whole}: a merge or unmerge of them had not ended")
    deleted = await empty(settings, Topic.ISSUES)
    # First, because rebuilt rows don't show merges and unmerges that had not ended.
    await write(settings, Topic.ISSUE_ACTIVITY, new.activities)
    written = await write(settings, Topic.ISSUES, new.records)
    await write(settings, Topic.SEEN, new.positions)
    return deleted, written


async def _seen(settings: ProcessorsSettings, *, stored: bool) -> tuple[int, int]:
    """Records removed and written. The positions in `issue-deltas`, which are no ids, are preserved."""
    entries = await seen(settings) if stored else []
    positions = position_records(await folded(settings))
    deleted = await empty(settings, Topic.SEEN)
    await write(settings, Topic.SEEN, positions)
    return deleted, await write(settings, Topic.SEEN, entries)
