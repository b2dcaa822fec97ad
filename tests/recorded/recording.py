"""The data of a version: its topics, the commits of its consumer groups, its database and the edge's spool."""

import gzip
import shutil
import tarfile
from pathlib import Path
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import OffsetAndMetadata
from msgspec import Struct

from broker.client import committed_offsets, open_admin, topic_names
from broker.consumer_lag import readers
from broker.topics import ensure_topics
from broker.types import TopicPartition
from schemas.settings import MigrateSettings
from tests.backed_up_clickhouse import BackedUpClickHouse
from tests.integration.processors import readback

GROUPS: Final = ("svc-processors", "svc-writer")
PARTITIONS: Final = 2
LOG, DATABASE, SPOOL = "log.json.gz", "clickhouse.tar.gz", "edge"


class RecordedMessage(Struct, frozen=True):
    """A record of a topic, in the order of its partition from offset 0 on."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


class RecordedCommit(Struct, frozen=True):
    """A commit of a consumer group."""

    group: str
    topic: str
    partition: int
    offset: int
    metadata: str


class Recording(Struct, frozen=True):
    """The recorded data of a version.

    `issues` are the rows of all issues after that version had processed everything; `ids` are those of all
    events.
    """

    project: str
    token: str
    ids: list[str]
    accepted: int
    messages: list[RecordedMessage]
    commits: list[RecordedCommit]
    issues: list[list[Any]] = []


def issues_of(server: BackedUpClickHouse) -> list[list[Any]]:
    """The fields of all issues that must be equal."""
    text = server.answer(
        "SELECT issue_id, events, users, status, merged_into, assignee, fingerprints, first_seen, last_seen, message "
        "FROM svc.issues FINAL ORDER BY issue_id FORMAT JSONCompactEachRow"
    )
    return [msgspec.json.decode(line) for line in text.splitlines()]


async def messages(settings: MigrateSettings) -> list[RecordedMessage]:
    """All records of all topics."""
    found = []
    for topic, name in topic_names(settings).items():
        for record in await readback.read(settings.kafka_bootstrap, name):
            headers = [(key, value) for key, value in record.headers]
            found.append(RecordedMessage(topic.title, record.partition, record.key, record.value, headers))
    return found


async def commits(settings: MigrateSettings) -> list[RecordedCommit]:
    """The commits of all groups."""
    names, found = topic_names(settings), []
    async with open_admin(settings) as admin:
        for group, topics in readers(*GROUPS).items():
            partitions = [TopicPartition(names[topic], p) for topic in topics for p in range(PARTITIONS)]
            titles = {names[topic]: topic.title for topic in topics}
            for tp, at in (await committed_offsets(admin, group, partitions)).items():
                found.append(
                    RecordedCommit(group, titles[tp.topic], tp.partition, at.offset, at.metadata or "")
                )
    return [commit for commit in found if commit.offset >= 0]


def save(recording: Recording, folder: Path, server: BackedUpClickHouse, edge: Path) -> None:
    """Write a recording, with the database and the edge's folder as they are."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    save_log(recording, folder)
    server.sql(f"BACKUP DATABASE svc TO {server.backup('recorded')}")
    with tarfile.open(folder / DATABASE, "w:gz") as archive:
        archive.add(server.directory / "backups" / "recorded", "recorded")
    for file in edge.rglob("*"):
        if file.suffix == ".spool":
            target = folder / SPOOL / file.relative_to(edge)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


def save_log(recording: Recording, folder: Path) -> None:
    """Write the parts that aren't separate files."""
    (folder / LOG).write_bytes(gzip.compress(msgspec.json.encode(recording), mtime=0))


def load_recording(folder: Path) -> Recording:
    """A recording as it was saved."""
    return msgspec.json.decode(gzip.decompress((folder / LOG).read_bytes()), type=Recording)


async def put_back(
    recording: Recording, folder: Path, settings: MigrateSettings, server: BackedUpClickHouse, edge: Path
) -> None:
    """Bring servers and the edge's folder into the state that was recorded."""
    with tarfile.open(folder / DATABASE) as archive:
        archive.extractall(server.directory / "backups", filter="data")
    server.sql("DROP DATABASE svc SYNC")
    server.sql(f"RESTORE DATABASE svc FROM {server.backup('recorded')}")
    shutil.copytree(folder / SPOOL, edge, dirs_exist_ok=True)
    await ensure_topics(settings)
    names = {topic.title: name for topic, name in topic_names(settings).items()}
    producer = AIOKafkaProducer(
        bootstrap_servers=settings.kafka_bootstrap, acks="all", max_request_size=4 << 20
    )
    await producer.start()
    try:
        for message in recording.messages:
            await producer.send(
                names[message.topic], message.value, message.key, message.partition, headers=message.headers
            )
        await producer.flush()
    finally:
        await producer.stop()
    for group in {commit.group for commit in recording.commits}:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.kafka_bootstrap, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        try:
            ours = [commit for commit in recording.commits if commit.group == group]
            offsets = {
                TopicPartition(names[commit.topic], commit.partition): OffsetAndMetadata(
                    commit.offset, commit.metadata
                )
                for commit in ours
            }
            consumer.assign(list(offsets))
            await consumer.commit(offsets)
        finally:
            await consumer.stop()
