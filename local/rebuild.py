"""`svc rebuild`: empties a table of the processors, which then build it again from the logs by themselves at their next start.

`seen` from `events`, `issues` from `issue-deltas` with the commands in it; both are kept for seven days. What is forwarded again
on the way carries its source position and is dropped downstream.
"""

import asyncio
import time
from typing import Final

import click
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from local.console import need_kafka, settings_of
from local.workspace import Workspace
from schemas.kafka import calm, client_options, name_of
from schemas.settings import ProcessorsSettings
from schemas.topics import Topic

NOTICED_SECONDS: Final = 15.0
TABLES: Final = {"seen": Topic.SEEN, "issues": Topic.ISSUES}


async def _members(admin: AIOKafkaAdminClient, group: str) -> int:
    """Workers that are at work."""
    [answer] = await admin.describe_consumer_groups([group])
    return sum(len(found["members"]) for found in answer.to_object()["groups"])


async def _all_gone(admin: AIOKafkaAdminClient, group: str) -> None:
    """Wait for the group to notice that its workers have ended, which it does after their session's time."""
    end = time.monotonic() + NOTICED_SECONDS
    while members := await _members(admin, group):
        if time.monotonic() > end:
            raise click.ClickException(f"{members} processors are running: stop them first")
        await asyncio.sleep(0.5)


async def _clean(admin: AIOKafkaAdminClient, topic: str, policy: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": policy})
    await admin.alter_configs([resource])


async def empty(settings: ProcessorsSettings, topic: Topic) -> int:
    """Delete all records of a compacted topic; returns how many there were at most.

    Raises ClickException while workers are at work: what they hold in memory would be written back.
    """
    name = name_of(settings, topic)
    admin = AIOKafkaAdminClient(**client_options(settings))
    consumer: AIOKafkaConsumer = AIOKafkaConsumer(**client_options(settings))
    calm(consumer._client)
    await admin.start()
    await consumer.start()
    try:
        await _all_gone(admin, settings.processors_app)
        found = await admin.describe_topics([name])
        places = [TopicPartition(name, p["partition"]) for p in found[0]["partitions"]]
        if not places:
            raise click.ClickException(f"there is no topic {name}: run `svc migrate`")
        begins, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        # A broker deletes no records of a topic that is only compacted.
        await _clean(admin, name, "compact,delete")
        try:
            await admin.delete_records({p: RecordsToDelete(before_offset=end) for p, end in ends.items()})
        finally:
            await _clean(admin, name, "compact")
        return sum(ends[p] - begins[p] for p in places)
    finally:
        await consumer.stop()
        await admin.close()


@click.command()
@click.argument("table", type=click.Choice(sorted(TABLES)))
@click.confirmation_option(prompt="The table is emptied and built again from the last seven days. Go on?")
@click.pass_obj
def rebuild(workspace: Workspace, table: str) -> None:
    """Build a table of the processors again: `seen` (ids) or `issues` (counts and states).

    Stop the processors first. What is older than the logs is not counted again.
    """
    settings = settings_of(workspace, ProcessorsSettings)
    need_kafka(settings.kafka_bootstrap)
    deleted = asyncio.run(empty(settings, TABLES[table]))
    click.echo(f"{table}: {deleted} records removed; it is built again when the processors start")
