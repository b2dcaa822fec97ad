"""The life of issues on real servers: commands, killed processors, the topic, and the rows of ClickHouse."""

import asyncio
import json
import os
import random
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control.issue_changes import IssueChanges
from control.issue_commands import Commands
from grouping.fingerprint import GroupingEvent, fingerprint
from schemas.changes import Update
from schemas.chunks import ChunkEvent, encode_chunk
from schemas.errors import ChangesUnavailable
from schemas.ids import event_partition, hex64, issue_id, uuid7
from schemas.issues import FINDINGS, Activity, IssueRecord
from storage.read.issues.issue_calls import GetIssue, GetIssueVersions
from storage.read.issues.issue_list import ListIssues
from storage.read.reader import Reader
from tests.eventually import eventually
from tests.integration.processors import readback
from tests.integration.processors.feed import NOW_MS, event, produce
from tests.integration.processors.process import WorkerProcess
from tests.integration.storage.grouped import Stage, ended

PROJECT = 7


class Living:
    """A project with incoming events, and the state of its issues; each `kind` of event is an issue."""

    def __init__(self, stage: Stage, worker: WorkerProcess, reader: Reader) -> None:
        self.stage = stage
        self.worker = worker
        self.reader = reader
        self.changes = IssueChanges(reader, Commands(stage.settings, deadline_seconds=30))
        self.sent: dict[int, int] = {}

    @property
    def bootstrap(self) -> str:
        return self.stage.settings.kafka_bootstrap

    @property
    def topic(self) -> str:
        return self.stage.settings.topic_prefix + "issues"

    async def send(self, kind: int, release: str, count: int = 1) -> None:
        """Events of one kind, each in the chunk that its id asks for."""
        records = []
        for _ in range(count):
            made = uuid7(NOW_MS)
            body = event(str(made), kind, NOW_MS) | {"release": release, "user": {"id": str(made)}}
            payload = msgspec.json.encode(body)
            chunk = encode_chunk([ChunkEvent(PROJECT, made.bytes, NOW_MS, "test/1", payload)])
            partitions = self.stage.settings.topic_partitions
            records.append((event_partition(PROJECT, made.bytes, partitions), chunk))
        await produce(self.bootstrap, self.stage.settings.topic_prefix + "events", records)
        self.sent[kind] = self.sent.get(kind, 0) + count

    async def record(self, kind: int) -> IssueRecord | None:
        """The last record on the topic of the issue that a kind opens."""
        return (await readback.issues(self.bootstrap, self.topic)).get(issue_of(kind))

    async def counted(self, kind: int, expected: int) -> IssueRecord:
        """The record once it has the expected count, on the topic and in ClickHouse."""

        async def done() -> IssueRecord | None:
            if not self.worker.running:
                self.worker.start()
            found = await self.record(kind)
            return (
                found if found is not None and found.events == expected and not found.life.pending else None
            )

        record = await eventually(done)
        assert record is not None

        async def shown() -> bool:
            found = (await self.reader.read(GetIssueVersions(PROJECT, [issue_of(kind)]))).get(issue_of(kind))
            return found is not None and found.version >= record.version

        await eventually(shown, timeout=30)
        return record

    async def stored(self, issue: str) -> int:
        """The issue's events by ClickHouse's tables of events, not by its record."""
        found = await self.reader.read(GetIssue(issue))
        fingerprints = ",".join(str(int(fingerprint, 16)) for fingerprint in found.fingerprints)
        client = self.stage.client()
        try:
            sql = f"SELECT sum(n) FROM issue_day WHERE fingerprint IN ({fingerprints})"
            return int(client.query(sql).result_rows[0][0])
        finally:
            client.close()


def fingerprint_of(kind: int) -> int:
    sent = msgspec.json.encode(event(str(uuid7(NOW_MS)), kind, NOW_MS))
    return fingerprint(msgspec.json.decode(sent, type=GroupingEvent)).hash


def issue_of(kind: int) -> str:
    return hex64(issue_id(PROJECT, fingerprint_of(kind)))


@contextmanager
def frozen_server() -> Iterator[str]:
    """The URL of a ClickHouse with a stopped process: the kernel takes connections, and no answer comes."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/svc"


@contextmanager
def working(stage: Stage, folder: Path) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(stage.settings.kafka_bootstrap, stage.settings.topic_prefix, folder).start()
    try:
        yield worker
    finally:
        if worker.running:
            worker.kill()


@pytest.fixture
async def living(stage: Stage, tmp_path: Path) -> AsyncIterator[Living]:
    async with AsyncExitStack() as stack:
        stack.enter_context(ended(stage.writer()))
        worker = stack.enter_context(working(stage, tmp_path))
        reader = Reader.open([stage.url])
        stack.push_async_callback(reader.close)
        await eventually(worker.ready)
        yield Living(stage, worker, reader)


@pytest.mark.holds("contract 4 merge")
async def test_counts_are_right_at_every_step_though_the_worker_is_killed_in_between(living: Living) -> None:
    luck = random.Random(7)
    for kind in (1, 2, 3):
        await living.send(kind, "shop@1.0.0+1", kind)
        await living.counted(kind, kind)
    whole = 1
    for others in ((2,), (3,)):
        merging = asyncio.create_task(
            living.changes.merge(issue_of(1), [issue_of(kind) for kind in others], by="ann")
        )
        await asyncio.sleep(luck.uniform(0, 0.3))
        living.worker.kill()
        living.worker.start()
        await living.send(others[0], "shop@1.0.0+1", 2)
        await merging
        whole += living.sent[others[0]]
        record = await living.counted(1, whole)
        assert record.users == whole
        assert living.sent[others[0]] == (await living.counted(others[0], living.sent[others[0]])).events
        await eventually(partial(_is, living, issue_of(1), whole))
        for kind in others:
            assert (await living.reader.read(GetIssue(issue_of(kind)))).id == issue_of(1)
    listed = (await living.reader.read(ListIssues(PROJECT, start=0))).issues
    assert [one.id for one in listed] == [issue_of(1)]
    parts = [hex64(fingerprint_of(2))]
    taking = asyncio.create_task(living.changes.unmerge(issue_of(1), parts, by="ann"))
    await asyncio.sleep(luck.uniform(0, 0.3))
    living.worker.kill()
    living.worker.start()
    await taking
    await living.send(2, "shop@1.0.0+1", 1)
    assert (await living.counted(2, living.sent[2])).merged_into is None
    assert (await living.counted(1, 1 + living.sent[3])).fingerprints == tuple(
        hex64(fingerprint_of(kind)) for kind in (1, 3)
    )
    await eventually(lambda: _is(living, issue_of(2), living.sent[2]))
    await eventually(lambda: _is(living, issue_of(1), 1 + living.sent[3]))
    kinds = [one.kind for one in await _activities(living) if one.kind not in FINDINGS]
    assert sorted(kinds) == sorted(["created"] * 3 + ["merged"] * 4 + ["unmerged"] * 2)


async def _activities(living: Living) -> list[Activity]:
    stored = await readback.activities(
        living.bootstrap, living.stage.settings.topic_prefix + "issue-activity"
    )
    return list({one.id: one for one in stored}.values())


async def _is(living: Living, issue: str, events: int) -> bool:
    return await living.stored(issue) == events


async def test_a_change_while_processors_are_down_is_made_once_they_are_back(living: Living) -> None:
    await living.send(1, "shop@1.0.0+1")
    await living.counted(1, 1)
    living.worker.kill()
    hasty = IssueChanges(living.reader, Commands(living.stage.settings, deadline_seconds=1))
    with pytest.raises(ChangesUnavailable):
        await hasty.update(issue_of(1), Update(assignee="bob"), by="ann", key="k")
    living.worker.start()
    issue = await living.changes.update(issue_of(1), Update(assignee="bob"), by="ann", key="k")
    assert issue.assignee == "bob"
    activities = await readback.activities(
        living.bootstrap, living.stage.settings.topic_prefix + "issue-activity"
    )
    assert [one.kind for one in activities].count("assigned") == 1


async def run_svc(living: Living, *arguments: str, **environ: str) -> tuple[int, str]:
    """Exit status and output of `svc issues`."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "cli",
        "--data-dir",
        str(living.stage.folder / "data"),
        "issues",
    ]
    process = await asyncio.create_subprocess_exec(
        *command, *arguments, env=os.environ | living.stage.environ | environ, stdout=PIPE, stderr=STDOUT
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.slow
async def test_the_command_line_makes_the_same_changes(living: Living) -> None:
    for kind in (1, 2):
        await living.send(kind, "shop@1.0.0+1", kind)
        await living.counted(kind, kind)

    async def printed(*arguments: str) -> Any:
        status, out = await run_svc(living, *arguments, "--json")
        assert status == 0, out
        return json.loads(out)

    one, other = issue_of(1), issue_of(2)
    assert [i["status"] for i in await printed("resolve", one, other, "--next", "--by", "ann")] == [
        "resolved"
    ] * 2
    assert (await printed("ignore", one, "--events", "5"))[0]["ignoreUntil"] == {"events": 5}
    with frozen_server() as url:
        status, out = await run_svc(living, "reopen", one, "--json", SVC_CLICKHOUSE_URL=url)
    assert (status, json.loads(out)[0]["status"]) == (0, "open")
    assert (await printed("assign", one, "bob"))[0]["assignee"] == "bob"
    assert (await run_svc(living, "comment", one, "look"))[0] == 0
    (merged,) = await printed("merge", one, other)
    assert (merged["totalEvents"], len(merged["fingerprints"])) == (3, 2)
    (alone,) = await printed("unmerge", one, hex64(fingerprint_of(2)))
    assert (alone["totalEvents"], len(alone["fingerprints"])) == (1, 1)
    shown = await printed("show", one)

    async def all_listed() -> bool:
        kinds = [change["kind"] for change in (await printed("show", one))["activity"]]
        return {
            "created",
            "resolved",
            "ignored",
            "reopened",
            "assigned",
            "commented",
            "merged",
            "unmerged",
        } <= set(kinds)

    assert (shown["id"], shown["assignee"]) == (one, "bob")
    await eventually(all_listed)
    status, out = await run_svc(living, "resolve", "0" * 16)
    assert (status, "no such issue" in out) == (1, True)
    assert (await run_svc(living, "resolve", "x"))[0] == 2
