"""`python -m tests.recorded.record FOLDER`: the data of this version, for later versions to read.

Some events are stored, some wait for the writer, some for the processors, and some in the edge's spool.
Issues were changed and merged.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from bench.chaos.chaos_load import Load
from bench.servers import prepare
from broker.consumer_lag import lags, readers
from cli.demo.demo_command import edge_knows
from cli.demo.sample_events import load_samples
from cli.projects import create_project
from cli.send.batch_sender import Sender
from cli.send.send_batches import batches
from local.kafka.local_kafka import LocalKafka
from local.local_stack import Stack
from runtime.supervisor import Supervisor
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.backed_up_clickhouse import BackedUpClickHouse
from tests.eventually import eventually
from tests.recorded.recording import (
    GROUPS,
    PARTITIONS,
    Recording,
    commits,
    issues_of,
    messages,
    save,
    save_log,
)

EVENTS = 30
RETENTION_DAYS = 3650
"""A recording is read for years."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def main(folder: Path, cache: Path) -> None:
    """Record the data of this version."""
    with tempfile.TemporaryDirectory(prefix="recording-") as temporary:
        asyncio.run(record(folder, Path(temporary), cache))


async def record(folder: Path, temporary: Path, cache: Path) -> None:
    """Run a stack, leave something at every stage, save it, and let the version itself end it."""
    kafka, server = LocalKafka(temporary / "kafka", cache), BackedUpClickHouse(temporary / "clickhouse")
    await asyncio.gather(asyncio.to_thread(kafka.start, 120), asyncio.to_thread(server.start, 120))
    try:
        stack = stack_on(kafka, server, temporary / "stack", cache)
        settings = load(MigrateSettings, stack.environ)
        supervisor = await started(stack)
        project = await create_project(
            settings, "recorded", rate_limit=1_000_000, retention_days=RETENTION_DAYS
        )
        await eventually(lambda: edge_knows(stack, project))
        stream, sender = (
            Load(load_samples(), 1, 0.1),
            Sender(stack.ingest_url, project.token, sdk="recorded/1"),
        )
        await sender.send(batches(stream.events(2 * EVENTS)))
        await processed(settings, *GROUPS)
        await change_issues(stack, project.id)
        await processed(settings, *GROUPS)
        await supervisor.stop()
        supervisor = await started(stack, "writer")
        await sender.send(batches(stream.events(EVENTS)))
        await processed(settings, GROUPS[0])
        await supervisor.stop()
        supervisor = await started(stack, "writer", "processors")
        await sender.send(batches(stream.events(EVENTS)))
        found = await messages(settings), await commits(settings)
        await asyncio.to_thread(kafka.stop)
        await sender.send(batches(stream.events(EVENTS)))
        assert not sender.report.problems
        await supervisor.stop()
        ids = [str(number) for number in sorted(stream.ids)]
        recording = Recording(project.id, project.token, ids, sender.report.accepted, *found)
        save(recording, folder, server, stack.data_dir / "edge")
        await asyncio.to_thread(kafka.start, 120)
        supervisor = await started(stack)
        await eventually(lambda: stored(server) == len(ids), 120)
        await processed(settings, *GROUPS)
        await supervisor.stop()
        save_log(replace(recording, issues=issues_of(server)), folder)
    finally:
        kafka.stop()
        server.stop()


def stack_on(kafka: LocalKafka, server: BackedUpClickHouse, folder: Path, cache: Path) -> Stack:
    """Our processes on these servers."""
    return prepare(
        folder,
        cache,
        SVC_KAFKA_BOOTSTRAP=kafka.bootstrap,
        SVC_CLICKHOUSE_URL=server.url(),
        SVC_TOPIC_PARTITIONS=str(PARTITIONS),
    )


async def started(stack: Stack, *without: str) -> Supervisor:
    """Running processes, but for some."""
    supervisor = Supervisor([child for child in stack.children() if child.name not in without])
    await supervisor.start()
    return supervisor


def stored(server: BackedUpClickHouse) -> int:
    """How many events are stored."""
    return int(server.answer("SELECT count() FROM svc.events"))


async def processed(settings: MigrateSettings, *groups: str) -> None:
    """Wait until these groups have read their topics."""
    wanted = {name: topics for name, topics in readers(*GROUPS).items() if name.startswith(groups)}

    async def done() -> bool:
        return not await lags(settings, wanted)

    await eventually(done, 120)


async def change_issues(stack: Stack, project: str) -> None:
    """Resolve, ignore, assign, comment and merge some."""
    listed = msgspec.json.decode(await svc(stack, "issues", "list", project, "--json"))
    first, second, third, fourth, fifth, *_ = [issue["id"] for issue in listed]
    for words in (
        ("resolve", first),
        ("ignore", second, "--events", "1000"),
        ("assign", third, "ann"),
        ("comment", third, "seen before"),
        ("merge", fourth, fifth),
    ):
        await svc(stack, "issues", *words)


async def svc(stack: Stack, *arguments: str) -> bytes:
    """The output of a command, which succeeds."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "cli", *arguments),
        env=os.environ | stack.environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output


if __name__ == "__main__":
    main()
