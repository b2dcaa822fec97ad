"""Every process starts with exactly the values of `svc guest plan`, as the chart hands them over."""

import asyncio
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import yaml
from click.testing import CliRunner

from cli.__main__ import svc
from local.ports import free_port
from local.readiness import is_ready
from tests.eventually import eventually
from tests.forked import ForkedProcess
from tests.unit.docker.pod_environment import environments
from tests.unit.docker.test_chart import render

PORTS = {
    "edge": "SVC_INGEST_PORT",
    "processors": "SVC_PROCESSORS_HEALTH_PORT",
    "writer": "SVC_WRITER_HEALTH_PORT",
    "dashboard": "SVC_DASHBOARD_PORT",
    "notify": "SVC_NOTIFY_HEALTH_PORT",
}


async def test_every_process_of_a_plan_becomes_ready(
    kafka_bootstrap: str, clickhouse_database_url: str, topic_prefix: str, tmp_path: Path
) -> None:
    secrets = {
        "SVC_CLICKHOUSE_URL": clickhouse_database_url,
        "SVC_CLICKHOUSE_READER_URL": clickhouse_database_url,
        "SVC_ADMIN_PASSWORD": "secret",
        "SVC_SESSION_SECRET": "s" * 40,
        "SVC_NOTIFY_CHANNELS": '{"team": {"webhook": "http://127.0.0.1:9/", "secret": "of the test, and long"}}',
    }
    given = {
        "SVC_KAFKA_BOOTSTRAP": kafka_bootstrap,
        "SVC_TOPIC_PREFIX": topic_prefix,
        "SVC_PROCESSORS_APP": f"{topic_prefix}processors",
        "SVC_WRITER_GROUP": f"{topic_prefix}writer",
        "SVC_NOTIFY_GROUP": f"{topic_prefix}notify",
        **{name: secrets[name] for name in ("SVC_CLICKHOUSE_URL", "SVC_NOTIFY_CHANNELS")},
    }
    words = ["--data-dir", str(tmp_path), "guest", "plan", "--format", "helm"]
    printed = CliRunner().invoke(svc, words, env=given)
    assert printed.exit_code == 0, printed.output
    found = environments(render(tmp_path, yaml.safe_load(printed.output)), secrets, tmp_path / "pods")
    migrated = await asyncio.to_thread(CliRunner().invoke, svc, ["migrate"], env=found.pop("migrate"))
    assert migrated.exit_code == 0, migrated.output
    with ExitStack() as stack:
        for process, environ in found.items():
            port = free_port()
            # Several pods on one machine.
            here = environ | {PORTS[process]: str(port)}
            started = ForkedProcess(f"cli.{process}", here, tmp_path / f"{process}.log")
            stack.callback(started.wait)
            stack.callback(started.kill)
            await eventually(partial(is_ready, f"http://127.0.0.1:{port}"), 60)
