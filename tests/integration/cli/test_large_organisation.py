"""The size of a large organisation, built once: everything that has a list of it in a statement, a record or an answer.

The seconds of each step are printed, and are the figures of docs/operate/scale.md.
"""

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from click.testing import CliRunner
from msgspec.structs import replace
from rich.console import Console

from broker.client import open_consumer, open_producer
from broker.rights import record_groups
from cli.__main__ import svc
from control.project_edits import create
from local.ports import free_port
from rebuild.rebuilt_ids import IdKeys, entries
from schemas.environment import load
from schemas.ids import issue_id, user_hash
from schemas.projects import Project, encode_project
from schemas.settings import WriterSettings
from schemas.times import DAY_MS
from storage.client import INSERT_SETTINGS, Client
from storage.exactly_once.block_plan import NoBlock, encode_plan
from storage.maintain import rebuild_queries
from storage.read.counts.count_calls import ListReleases
from storage.read.counts.tag_calls import CountProjectTags
from storage.read.execute import Executor, Limits
from storage.read.issues.issue_list import SORTS, ListIssues
from storage.read.reader import Reader
from tests.eventually import eventually
from tests.forked import ForkedProcess
from tests.integration.conftest import PARTITIONS
from tests.integration.storage.exactly_once.test_many_projects import BLOCK_ROWS, completed

pytestmark = pytest.mark.slow

PROJECTS = 20_000
ISSUES = 200_000
"""Of the first project, one event each."""
RELEASES = 1_000
FIRST = 1_000_000
RETENTIONS = 26
"""With twelve weeks or thirteen, some 300 partitions of each table."""
DAYS = 84
USER = "user-1"
EVENTS_OF_USER = 1_600
EVENTS_OF_OTHERS = 2
TOPIC_PARTITIONS = 300
PAYLOAD = '{"error":{"type":"TypeError","message":"m"}}'

_EVENTS = f"""
    INSERT INTO ingest
    (project_id, fingerprint, ts, id, received, release, environment, platform, kind, user_id, user_hash, error_type,
     message, tags, grouping_version, grouping_rule, retention_days, payload_days, payload)
    WITH
        number < {ISSUES} AS is_first,
        is_first AND number % {ISSUES // EVENTS_OF_USER} = 0 AS is_users,
        toUInt32({FIRST} + if(is_first, 0, 1 + (number - {ISSUES}) % {PROJECTS - 1})) AS project,
        toUnixTimestamp(today()) * 1000 - number % {DAYS} * {DAY_MS} - number % 1000 AS ms,
        fromUnixTimestamp64Milli(toInt64(ms), 'UTC') AS at,
        90 + project % {RETENTIONS} AS days,
        if(is_users, '{USER}', concat('other-', toString(number % 5000))) AS user
    SELECT
        project, if(is_first, number + 1, project), at,
        bitShiftLeft(toUInt128(ms), 80) + bitShiftLeft(toUInt128(7), 76) + bitShiftLeft(toUInt128(2), 62) + number, at,
        concat('shop@1.', toString(number % {RELEASES}), '.0+1'), ['prod', 'staging'][1 + number % 2], 'javascript',
        'error', user, if(is_users, {user_hash(FIRST, USER)}, cityHash64(project, user)), 'TypeError',
        concat('message ', toString(number)), map('tier', toString(number % 3), 'account', toString(number % 997)),
        'v1', 'frames', days, days, '{PAYLOAD}'
    FROM numbers({ISSUES + (PROJECTS - 1) * EVENTS_OF_OTHERS})"""
_OUTCOMES = """
    INSERT INTO outcomes (project_id, minute, outcome, source, count)
    SELECT project_id, toStartOfMinute(toDateTime(received)) AS minute, 'accepted', 'grouper/0', count()
    FROM events GROUP BY project_id, minute"""
_ISSUES = """
    SELECT project_id, fingerprint, min(ts), max(ts), count(), argMax(id, ts), argMax(message, ts),
        argMin(release, ts), argMax(release, ts) FROM events GROUP BY project_id, fingerprint"""
_PARTITIONS = """
    SELECT DISTINCT partition FROM system.parts
    WHERE active AND database = currentDatabase() AND table = 'events'"""
_COLUMNS = (
    "project_id", "fingerprints", "first_seen", "last_seen", "events", "last_event", "message", "first_release",
    "last_release", "issue_id", "version", "status", "error_type",
)  # fmt: skip


class Organisation:
    """Its database and topics, and how long each step took."""

    def __init__(self, bootstrap: str, url: str, prefix: str, folder: Path, client: Client) -> None:
        self.folder = folder
        self.url = url
        self.prefix = prefix
        self.client = client
        self.environ = {
            "SVC_KAFKA_BOOTSTRAP": bootstrap,
            "SVC_CLICKHOUSE_URL": url,
            "SVC_TOPIC_PREFIX": prefix,
            "SVC_PROCESSORS_APP": f"{prefix}processors",
            "SVC_WRITER_GROUP": f"{prefix}writer",
            "SVC_ADMIN_PASSWORD": "correct horse",
        }
        self.settings = load(WriterSettings, self.environ)
        self.projects: list[Project] = []

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Print the seconds of the block."""
        began = time.monotonic()
        yield
        Console(soft_wrap=True).print(f"{time.monotonic() - began:7.1f} s  {what}")

    async def run(self, *arguments: str) -> str:
        """The output of a command that succeeds."""
        command = ["--data-dir", str(self.folder), *arguments]
        done = await asyncio.to_thread(CliRunner(env=self.environ).invoke, svc, command)
        assert done.exit_code == 0, done.output[-2_000:]
        return done.stdout

    def build(self) -> None:
        """Fill the tables."""
        self.client.command(_EVENTS, settings=dict(INSERT_SETTINGS))
        self.client.command(_OUTCOMES)
        rows = [
            [project, [fingerprint], *row, issue_id(project, fingerprint), 1, "open", "TypeError"]
            for project, fingerprint, *row in self.client.query(_ISSUES).result_rows
        ]
        self.client.insert("issues", rows, column_names=list(_COLUMNS))

    async def announce(self) -> None:
        """Write the projects, and a writer's positions behind all events."""
        self.projects = [
            # The retention decides the partition.
            replace(
                create(
                    f"project {n}", retention_days=90 + (FIRST + n) % RETENTIONS, now_ms=1_760_000_000_000
                ),
                id=str(FIRST + n),
            )
            for n in range(PROJECTS)
        ]
        async with open_producer(self.settings, linger_ms=20) as producer:
            topic = f"{self.prefix}projects"
            for project in self.projects:
                await producer.send(topic, encode_project(project), project.id.encode())
        state = encode_plan(NoBlock(source_offset=1_000_000))
        await self.commit(self.settings.writer_group, "grouped", 0, state)

    async def commit(self, group: str, topic: str, offset: int | None = None, state: str = "") -> None:
        """Commit positions as a writer that has stored the topic's records; by default all of them."""
        options = {"group_id": group, "enable_auto_commit": False}
        tps = [TopicPartition(f"{self.prefix}{topic}", p) for p in range(PARTITIONS)]
        async with open_consumer(self.settings, **options) as consumer:
            consumer.assign(tps)
            ends = await consumer.end_offsets(tps)
            await consumer.commit(
                {tp: OffsetAndMetadata(ends[tp] if offset is None else offset, state) for tp in tps}
            )


@pytest.fixture
async def organisation(
    kafka_bootstrap: str, clickhouse_database_url: str, prefix: str, tmp_path: Path, client: Client
) -> Organisation:
    made = Organisation(kafka_bootstrap, clickhouse_database_url, prefix, tmp_path, client)
    with made.timed("built"):
        made.build()
        await made.announce()
    return made


async def test_everything_with_a_list_works(organisation: Organisation) -> None:
    client, timed = organisation.client, organisation.timed
    assert len(client.query(_PARTITIONS).result_rows) > 300
    await read_lists(organisation)
    await know_projects(organisation)

    with timed("reconcile"):
        await organisation.run("reconcile", "--json")
    client.command("ALTER TABLE issue_day DELETE WHERE project_id % 10 = 3 SETTINGS mutations_sync = 1")
    with timed("reconcile --repair of a tenth of the projects"):
        await organisation.run("reconcile", "--repair", "--json")
    with timed(f"erase a user of {EVENTS_OF_USER:,} events"):
        printed = await organisation.run("erase", "--project", str(FIRST), "--user", USER, "--yes", "--json")
    assert json.loads(printed)["events"] == EVENTS_OF_USER
    await organisation.run("reconcile", "--json")

    # The record of the erasure, which a running writer stores.
    [group] = record_groups(organisation.settings.writer_group, 1)
    await organisation.commit(group, "issue-activity")
    with timed("rebuild all --from clickhouse"):
        printed = await organisation.run("rebuild", "all", "--from", "clickhouse", "--yes")
    assert f"{ISSUES + PROJECTS - 1} written" in printed
    with timed(f"ids of {TOPIC_PARTITIONS} partitions"):
        received = rebuild_queries.received_days(client, DAYS)
        known = IdKeys(TOPIC_PARTITIONS, received, DAYS)
        known.add_events(rebuild_queries.ids(client, received[-1] * DAY_MS))
        assert all(
            list(entries(partition, 1_000, known.blocks(partition), received[0]))
            for partition in range(TOPIC_PARTITIONS)
        )
    with timed(f"a block of {BLOCK_ROWS:,} rows of 5,000 projects completed"):
        completed(client, projects=5_000, days=1, rows=BLOCK_ROWS)


async def read_lists(organisation: Organisation) -> None:
    """The lists of the project of many issues, two pages each."""
    reader = Reader(Executor([organisation.url], Limits()), lambda: time.time_ns() // 1_000_000)
    start = time.time_ns() // 1_000_000 - DAYS * DAY_MS
    for sort in SORTS:
        for query in ("", "environment:prod", "release:shop@1.7.0+1"):
            with organisation.timed(f"issues by {sort} {query}"):
                page = await reader.read(ListIssues(FIRST, query, start, sort=sort))
                again = ListIssues(FIRST, query, start, sort=sort, cursor=page.next_cursor)
                assert page.issues
                assert (await reader.read(again)).issues
    with organisation.timed("releases"):
        releases = await reader.read(ListReleases(FIRST))
        assert releases.next_cursor
    with organisation.timed("tags"):
        assert await reader.read(CountProjectTags(FIRST, "", start))
    await reader.close()


async def know_projects(organisation: Organisation) -> None:
    """The list of projects of the read API, and the token of the last project at the edge."""
    last = organisation.projects[-1]
    ports = {name: str(free_port()) for name in ("SVC_INGEST_PORT", "SVC_DASHBOARD_PORT")}
    environ = {**os.environ, **organisation.environ, **ports, "SVC_DATA_DIR": str(organisation.folder)}
    processes = [
        ForkedProcess(f"cli.{name}", environ, organisation.folder / f"{name}.log")
        for name in ("edge", "dashboard")
    ]
    admin = {"Authorization": aiohttp.encode_basic_auth("admin", environ["SVC_ADMIN_PASSWORD"])}
    sender = {"Authorization": f"Bearer {last.tokens[0].token}", "Svc-Sdk": "test/1"}
    try:
        async with aiohttp.ClientSession() as session:

            async def listed() -> bool:
                url = f"http://127.0.0.1:{ports['SVC_DASHBOARD_PORT']}/api/v1/projects"
                with suppress(aiohttp.ClientConnectionError):
                    async with session.get(url, headers=admin) as answer:
                        return answer.status == 200 and len((await answer.json())["projects"]) == PROJECTS
                return False

            async def taken() -> bool:
                url = f"http://127.0.0.1:{ports['SVC_INGEST_PORT']}/v1/events:batch"
                with suppress(aiohttp.ClientConnectionError):
                    async with session.post(url, headers=sender, json={"events": []}) as answer:
                        return answer.status == 202
                return False

            with organisation.timed("dashboard and edge started"):
                await eventually(listed)
                await eventually(taken)
            with organisation.timed("list of projects"):
                assert await listed()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    with organisation.timed("svc projects list"):
        assert len(json.loads(await organisation.run("projects", "list", "--json"))) == PROJECTS
