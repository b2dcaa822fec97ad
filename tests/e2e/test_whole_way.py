"""The whole way: edge, processors, writer and dashboard as processes, on a real Kafka and a real ClickHouse."""

import asyncio
import json
import os
import random
import re
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from click.testing import CliRunner

from cli.__main__ import svc
from cli.demo.demo_checks import ReadApi
from cli.demo.sample_events import fresh, load_samples
from cli.send.batch_sender import Sender
from cli.send.send_batches import batches
from local.local_stack import Stack
from local.ports import free_port
from runtime.supervisor import Supervisor
from schemas.environment import load
from schemas.settings import ProcessorsSettings, WriterSettings
from tests.e2e.whole_stack import SDK, encoded, project_of, session_of
from tests.eventually import eventually
from tests.programs import program
from tests.unit.docker.test_chart import queries

ROOT = Path(__file__).parents[2]


# The loop of the stack.
pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_every_event_is_stored_and_counted_once_though_sent_twice_and_processes_are_killed(
    running: tuple[Stack, Supervisor],
) -> None:
    stack, supervisor = running
    project = await project_of(stack)
    events = fresh(load_samples(), datetime.now(UTC), random.Random(5))
    sent = {event["id"] for event in events}

    async def post() -> None:
        report = await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded(events)))
        assert report.clean, report.problems

    async def kill(name: str) -> None:
        pid = supervisor.statuses[name].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: supervisor.statuses[name].pid not in {None, pid}, 60)

    await post()
    await asyncio.gather(kill("processors"), post())
    await asyncio.gather(kill("writer"), post())

    async with session_of(stack) as session:
        api = ReadApi(session, project.id)

        async def arrived() -> bool:
            seen = await api.all()
            return seen.counted >= len(sent) and seen.stored >= len(sent)

        await eventually(arrived, 120)
        # The last event comes through last: once it is there, the repeats have been through every stage.
        last = fresh(load_samples()[:20], datetime.now(UTC), random.Random(6))
        report = await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded(last)))
        assert report.clean
        sent |= {event["id"] for event in last}
        await eventually(arrived, 120)
        assert (await api.all()).differences(sent) == []


async def test_an_event_comes_back_from_the_read_api_as_it_was_sent(
    running: tuple[Stack, Supervisor],
) -> None:
    stack, _ = running
    project = await project_of(stack)
    event = fresh(load_samples()[:1], datetime.now(UTC), random.Random(9))[0]
    event["error"]["message"] = "nul \x00, right to left \u202e, \U0001f4a5 and " + "long " * 100_000
    event["error"]["stack"] = []
    event["unknownField"] = {"kept": [1, 2.5, None, "é"]}
    report = await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded([event])))
    assert report.clean, report.problems
    path = f"/api/v1/projects/{project.id}/events/{event['id']}"
    async with session_of(stack) as session:

        async def found() -> Any:
            async with session.get(path) as response:
                return await response.json() if response.status == 200 else None

        answer = await eventually(found, 60)
    assert answer["event"] == event
    assert answer["sdk"] == SDK
    command = ["trace", event["id"], "--json"]
    traced = await asyncio.to_thread(CliRunner(env=dict(stack.environ)).invoke, svc, command)
    assert traced.exit_code == 0, traced.output
    shown = json.loads(traced.output)["steps"]
    assert [step["stage"] for step in shown] == ["edge", "events", "grouped", "ClickHouse"]
    assert shown[-1]["what"] == f"stored, issue {answer['issueId']}"


NEVER_HAPPENED = re.compile(r"insert_failures|dead_letters|audit_difference|connections_ended|outcome!=")
"""Metrics with labels that have no value before something fails."""


async def test_every_query_of_the_grafana_dashboards_is_answered(
    running: tuple[Stack, Supervisor], tmp_path: Path
) -> None:
    prometheus = program("prometheus")
    stack, _ = running
    project = await project_of(stack)
    processors, writer = load(ProcessorsSettings, stack.environ), load(WriterSettings, stack.environ)
    addresses = [url.removeprefix("http://") for url in (stack.ingest_url, stack.dashboard_url)]
    addresses += [
        f"127.0.0.1:{port}" for port in (processors.processors_health_port, writer.writer_health_port)
    ]
    jobs = [{"job_name": "svc", "scrape_interval": "1s", "static_configs": [{"targets": addresses}]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": jobs}))
    address = f"127.0.0.1:{free_port()}"
    command = [
        prometheus,
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address={address}",
    ]
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        async with aiohttp.ClientSession(f"http://{address}") as session, session_of(stack) as reader:

            async def answer(query: str) -> list[Any]:
                try:
                    async with session.get("/api/v1/query", params={"query": query}) as response:
                        # While Prometheus starts.
                        if response.status == 503:
                            return []
                        body = await response.json()
                except aiohttp.ClientConnectionError:
                    return []
                assert body["status"] == "success", (query, body)
                found: list[Any] = body["data"]["result"]
                return found

            async def unanswered() -> list[str]:
                return [
                    query
                    for query in queries()
                    if not await answer(query) and not NEVER_HAPPENED.search(query)
                ]

            async def all_answered() -> bool:
                events = fresh(load_samples()[:3], datetime.now(UTC), random.Random())
                await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded(events)))
                async with reader.get(f"/api/v1/projects/{project.id}/issues"):
                    pass
                return not await unanswered()

            with suppress(AssertionError):
                await eventually(all_answered, 60)
            assert await unanswered() == []
    finally:
        process.terminate()
        await process.wait()


async def test_the_commands_of_the_readme_send_events(running: tuple[Stack, Supervisor]) -> None:
    stack, _ = running
    project = await project_of(stack)
    (block,) = re.findall(
        r"^```sh\n(\.venv.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    _, send = block.split("export SVC_TOKEN=svc_pk_...\n")
    send = send.partition(".venv/bin/svc doctor")[0]
    send = send.replace("http://127.0.0.1:8080", stack.ingest_url).replace(
        ".venv/bin/svc", f"{sys.executable} -P -m cli"
    )
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", send),
        cwd=ROOT,
        env={**os.environ, "SVC_TOKEN": project.token, "SVC_INGEST_URL": stack.ingest_url},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed
    assert b" 202 " in printed
    assert b"{}" in printed
    samples = len(load_samples())

    async with session_of(stack) as session:

        async def stored() -> bool:
            seen = await ReadApi(session, project.id).all()
            return seen.stored == samples + 1

        await eventually(stored, 60)
