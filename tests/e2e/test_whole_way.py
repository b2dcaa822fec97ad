"""The whole way: edge, processors, writer and dashboard as processes, on a real Kafka and a real ClickHouse."""

import asyncio
import io
import json
import os
import random
import re
import signal
import sys
import textwrap
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from click.testing import CliRunner

from cli.__main__ import svc
from cli.demo.checks import ReadApi
from cli.demo.sample_events import fresh, load_samples
from cli.projects import CreatedProject
from cli.send.batches import batches
from cli.send.sender import Sender
from local.ports import free_port
from local.stack import Stack
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
        # What is sent last comes through last: once it is there, the repeats have been through every stage.
        last = fresh(load_samples()[:20], datetime.now(UTC), random.Random(6))
        report = await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded(last)))
        assert report.clean
        sent |= {event["id"] for event in last}
        await eventually(arrived, 120)
        assert (await api.all()).differences(sent) == []


async def test_what_the_edge_refuses_leaves_no_trace(running: tuple[Stack, Supervisor]) -> None:
    stack, _ = running
    project = await project_of(stack)
    good = fresh(load_samples()[:1], datetime.now(UTC), random.Random(7))[0]
    bad = {**good, "kind": "warning", "id": fresh([good], datetime.now(UTC), random.Random(8))[0]["id"]}
    headers = {
        "Authorization": f"Bearer {project.token}",
        "Svc-Sdk": SDK,
        "Content-Type": "application/json",
    }
    url = f"{stack.ingest_url}/v1/events"
    async with aiohttp.ClientSession() as session:

        async def answer(body: bytes, **changed: str) -> tuple[int, Any]:
            async with session.post(url, data=io.BytesIO(body), headers={**headers, **changed}) as response:
                return response.status, await response.json()

        status, refused = await answer(json.dumps(bad).encode())
        assert (status, refused["error"], refused["details"][0]["field"]) == (400, "validationFailed", "kind")
        status, refused = await answer(b"{}", Authorization="Bearer svc_pk_nope")
        assert (status, refused["error"], refused["details"][0]["field"]) == (
            401,
            "unauthorized",
            "Authorization",
        )
        status, refused = await answer(b"{" + b" " * (1 << 20))
        assert (status, refused["error"]) == (413, "payloadTooLarge")
        status, refused = await answer(b"no gzip", **{"Content-Encoding": "gzip"})
        assert (status, refused["error"]) == (400, "validationFailed")
        status, refused = await answer(b"{")
        assert (status, refused["error"]) == (400, "validationFailed")
        assert await answer(json.dumps(good).encode()) == (202, {})

    async with session_of(stack) as session:
        api = ReadApi(session, project.id)

        async def stored() -> bool:
            seen = await api.all()
            return seen.counted >= 1 and seen.stored >= 1

        await eventually(stored, 60)
        assert (await api.all()).differences({good["id"]}) == []


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
        ".venv/bin/svc", f"{sys.executable} -m cli"
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


PROGRAMS = {
    "crashing": """
        def divide(total, parts):
            return total / parts

        divide(1, 0)
        """,
    "threaded": """
        import threading

        def work():
            raise ValueError("in a thread")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    "asyncio": """
        import asyncio

        async def main():
            raise LookupError("in a coroutine")

        asyncio.run(main())
        """,
    "forked": """
        import os

        def child():
            raise OSError("in a child")

        pid = os.fork()
        if pid == 0:
            child()
        os.waitpid(pid, 0)
        """,
}
ISSUES = {
    ("ZeroDivisionError", "division by zero"): "divide",
    ("ValueError", "in a thread"): "work",
    ("LookupError", "in a coroutine"): "main",
    ("OSError", "in a child"): "child",
}
"""Type and message of each program's issue, and the function in which the error arose."""


async def run_program(stack: Stack, project: CreatedProject, folder: Path, name: str) -> None:
    script = folder / f"program_{name}.py"  # `asyncio.py` would hide the module
    begin = 'import svc\nsvc.init(release="shop@1.2.3+4", environment="e2e")\nsvc.set_tag("program", "%s")\n'
    script.write_text(begin % name + textwrap.dedent(PROGRAMS[name]))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        env={**os.environ, "SVC_TOKEN": project.token, "SVC_INGEST_URL": stack.ingest_url},
        stderr=asyncio.subprocess.PIPE,
    )
    _, printed = await process.communicate()
    assert b"Traceback (most recent call last):" in printed


async def test_uncaught_errors_of_programs_become_issues_with_their_frames(
    running: tuple[Stack, Supervisor], tmp_path: Path
) -> None:
    stack, _ = running
    project = await project_of(stack)
    for name in PROGRAMS:
        await run_program(stack, project, tmp_path, name)

    async with session_of(stack) as session:

        async def issues() -> list[dict[str, Any]]:
            async with session.get(f"/api/v1/projects/{project.id}/issues") as response:
                found = list((await response.json())["issues"])
            return found if len(found) >= len(ISSUES) else []

        found = {(issue["errorType"], issue["message"]): issue for issue in await eventually(issues, 60)}
        assert found.keys() == ISSUES.keys()
        for key, function in ISSUES.items():
            issue = found[key]
            assert (issue["events"], issue["totalEvents"], issue["status"]) == (1, 1, "open")
            assert function in issue["culprit"]
            async with session.get(f"/api/v1/issues/{issue['id']}/events/latest") as response:
                latest = await response.json()
            top = latest["event"]["error"]["stack"][0]
            assert (top["function"], top["inApp"]) == (function, True)
            assert top["file"] == f"program_{latest['event']['tags']['program']}.py"
            assert latest["issueId"] == issue["id"]
            assert any(key[0] in part for part in latest["grouping"]["parts"])


async def test_what_is_read_agrees_with_what_was_processed_and_shows_each_change(
    running: tuple[Stack, Supervisor],
) -> None:
    stack, _ = running
    project = await project_of(stack)
    events = fresh(load_samples()[:60], datetime.now(UTC), random.Random(9))
    assert (await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded(events)))).clean
    path = f"/api/v1/projects/{project.id}"
    async with session_of(stack) as session:

        async def call(method: str, path: str, body: object = None) -> Any:
            async with session.request(method, path, json=body) as answer:
                assert answer.status in {200, 201}, await answer.text()
                return await answer.json()

        async def counted() -> bool:
            seen = await ReadApi(session, project.id).all()
            return seen.counted >= len(events) and seen.stored >= len(events)

        await eventually(counted, 120)
        # Without rules every stored event would be grouped as it was: the same code has grouped it.
        tested = await call("POST", f"{path}/grouping-rules:test", {"rules": []})
        assert (tested["sampled"], tested["moved"], tested["unreadable"]) == (len(events), 0, 0)
        everything = {"name": "all", "match": "", "fingerprint": ["one"]}
        tested = await call("POST", f"{path}/grouping-rules:test", {"rules": [everything]})
        issues = (await call("GET", f"{path}/issues?limit=500"))["issues"]
        assert (tested["issuesBefore"], tested["issuesAfter"]) == (len(issues), 1)
        assert sum(issue["events"] for issue in issues) == len(events)

        issue, wanted = issues[0]["id"], ""

        async def shown() -> bool:
            one = await call("GET", f"/api/v1/issues/{issue}")
            listed = (await call("GET", f"{path}/issues?limit=500"))["issues"]
            states = {one["status"], {found["id"]: found["status"] for found in listed}[issue]}
            return states == {wanted}

        for wanted in ("resolved", "ignored", "open"):
            changed = await call("PATCH", f"/api/v1/issues/{issue}", {"status": wanted})
            assert changed["status"] == wanted
            # At once, but for a writer that is behind on a busy machine.
            await eventually(shown, 60)
        view = await call("POST", f"{path}/views", {"name": "mine", "query": "is:open"})
        assert (await call("GET", f"{path}/views"))["views"] == [view]
