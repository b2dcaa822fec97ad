"""The steps of docs/start/your-servers.md, on three secured brokers and three ClickHouse servers.

No right is granted beyond those that the page asks for.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from broker.rights import PROCESSES
from local.ports import free_port
from storage.client import open_client
from tests.certificates import certificate
from tests.eventually import eventually
from tests.granted_clickhouse import PASSWORD, user_xml
from tests.kafka_brokers import SecuredBroker, together
from tests.secured_kafka import KINDS, OPERATIONS, Acl, CreateAcls
from tests.servers import CACHE
from tests.shard_servers import CLUSTER, ShardServer, shard_servers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start" / "your-servers.md").read_text(encoding="utf-8")
USERS = tuple(f"svc-{process}" for process in PROCESSES)
MINUTES = 15
DATABASE, WRITER = "test_guest", "svc_writer"
"""Names that are free on the test's servers, where `svc` is already a user and a database."""


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[SecuredBroker]]:
    authority = certificate(tmp_path)
    found = [SecuredBroker(tmp_path / f"kafka{number}", CACHE, authority, USERS) for number in range(3)]
    together(found)
    with ExitStack() as stack:
        for broker in found:
            broker.start(120)
            stack.callback(broker.stop)
        yield found


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[list[ShardServer]]:
    with shard_servers(tmp_path / "clickhouse", 3) as found:
        yield found


def _address(server: ShardServer) -> str:
    return urlsplit(server.url()).netloc.rpartition("@")[2]


class Stranger:
    """Types the blocks of the page into one shell, with the names of these servers in place of those of the page."""

    def __init__(self, folder: Path, brokers: list[SecuredBroker], shards: list[ShardServer]) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "docs").symlink_to(ROOT / "docs")
        for user in USERS:
            (folder / f"{user.removeprefix('svc-')}-password").write_text(f"{user}-secret\n")
        (folder / "admin-password").write_text(PASSWORD)
        self.ports = {
            name: free_port() for name in ("INGEST", "DASHBOARD", "PROCESSORS_HEALTH", "WRITER_HEALTH")
        }
        hosts = {f"ch{number + 1}": _address(shard) for number, shard in enumerate(shards)}
        self._names = {
            "kafka1:9093,kafka2:9093,kafka3:9093": ",".join(broker.secured for broker in brokers),
            "/etc/svc/kafka-ca.pem": str(brokers[0].authority),
            "PASSWORD@": f"{PASSWORD}@",
            "admin:PASSWORD": f"admin:{PASSWORD}",
            "http://svc:": f"http://{WRITER}:",
            "127.0.0.1:8080": f"127.0.0.1:{self.ports['INGEST']}",
            "127.0.0.1:8081": f"127.0.0.1:{self.ports['DASHBOARD']}",
            "CLUSTER=events": f"CLUSTER={CLUSTER}",
            **{f"{name}:8123/svc": f"{address}/{DATABASE}" for name, address in hosts.items()},
        }
        self._programs()
        self._environ = {
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            **{f"SVC_{name}_PORT": str(port) for name, port in self.ports.items()},
        }
        self._running: list[asyncio.subprocess.Process] = []

    def _programs(self) -> None:
        """The tools of administrators only record their calls: `administer` and `let_in` execute them."""
        programs = {
            "kafka-topics.sh": _NOTED,
            "kafka-acls.sh": _NOTED,
            "kafka-configs.sh": _NOTED,
            "clickhouse-client": _CLIENT,
        }
        (self._folder / "bin").mkdir()
        for name, text in programs.items():
            file = self._folder / "bin" / name
            file.write_text(f"#!{sys.executable}\n{text}")
            file.chmod(0o755)

    async def types(self, block: str, **names: str) -> str:
        """The output of a block. Variables and background jobs stay."""
        for page, here in {**self._names, **names}.items():
            block = block.replace(page, here)
        script = f"set -e; test ! -e variables || . ./variables\n{block}\nexport -p > variables\n"
        with (self._folder / "shell.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", script),
                cwd=self._folder,
                env=self._environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if "&" not in block else log,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
        output, _ = await process.communicate()
        assert process.returncode == 0, f"{block}\n{(self._folder / 'shell.log').read_text()[-3000:]}"
        return (output or b"").decode()

    def noted(self, name: str) -> list[Any]:
        """The recorded calls of the tools."""
        return [json.loads(line) for line in (self._folder / name).read_text().splitlines()]

    def is_ready(self, name: str) -> bool:
        """Whether a process says that it is ready, by the name of its port."""
        try:
            with urlopen(f"http://127.0.0.1:{self.ports[name]}/readyz", timeout=30) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End everything that was started."""
        for process in self._running:
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                continue


_NOTED = """
import json, sys
with open("noted", "a") as file:
    file.write(json.dumps(sys.argv) + chr(10))
"""
_CLIENT = """
import json, sys
with open("statements", "a") as file:
    file.write(json.dumps([sys.argv[sys.argv.index("--host") + 1], sys.stdin.read()]) + chr(10))
"""


async def administer(broker: SecuredBroker, noted: list[list[str]]) -> None:
    """Execute the calls of Kafka's scripts."""
    topics, acls = [], []
    for program, *words in noted:
        given: dict[str, list[str]] = {}
        for name, value in zip(words, [*words[1:], ""], strict=True):
            if name.startswith("--"):
                given.setdefault(name, []).append(value)
        if program.endswith("kafka-configs.sh"):
            # The brokers have the users from the beginning.
            assert given["--entity-name"][0] in USERS
            continue
        if program.endswith("kafka-topics.sh"):
            configs = dict(config.split("=", 1) for config in given["--config"])
            counts = int(given["--partitions"][0]), int(given["--replication-factor"][0])
            topics.append(NewTopic(given["--topic"][0], *counts, topic_configs=configs))
        else:
            kind = next(name for name in ("topic", "group") if f"--{name}" in given)
            prefixed = given.get("--resource-pattern-type") == ["prefixed"]
            user = given["--allow-principal"][0].removeprefix("User:")
            acls += [
                Acl(user, KINDS[kind], given[f"--{kind}"][0], OPERATIONS[operation], prefixed)
                for operation in given["--operation"]
            ]
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        created = await admin.create_topics(topics)
        assert [error for error in created.topic_errors if error[1]] == []
        results = (await admin._send_to_controller(CreateAcls(acls))).results
        assert [result for result in results if result[0]] == []
    finally:
        await admin.close()


def let_in(server: ShardServer, sql: str) -> None:
    """Execute the calls of ClickHouse's client: the engine of a test takes users from its configuration alone."""
    databases = re.findall(r"CREATE DATABASE IF NOT EXISTS (\w+);", sql)
    assert databases == [DATABASE, f"{DATABASE}_all"]
    users = re.findall(
        r"CREATE USER IF NOT EXISTS (\w+) IDENTIFIED WITH sha256_password BY '([^']+)'( SETTINGS PROFILE svc_reader)?;",
        sql,
    )
    assert [password for _, password, _ in users] == [PASSWORD] * 3
    server.users = "".join(
        user_xml(
            WRITER if user == "svc" else user,
            re.findall(rf"^(GRANT [^;]+) TO {user};$", sql, re.MULTILINE),
            readonly=bool(profile),
        )
        for user, _, profile in users
    )
    server.stop()
    server.start(120)
    client = open_client(server.url())
    for database in databases:
        client.command(f"CREATE DATABASE {database}")
    client.close()


@pytest.fixture
def stranger(tmp_path: Path, brokers: list[SecuredBroker], shards: list[ShardServer]) -> Iterator[Stranger]:
    found = Stranger(tmp_path / "guest", brokers, shards)
    yield found
    found.stop()


async def test_the_page_leads_to_the_first_event(
    stranger: Stranger, brokers: list[SecuredBroker], shards: list[ShardServer], tmp_path: Path
) -> None:
    began = time.monotonic()
    where, asks, administrators, operator, processes, sends = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    await stranger.types(where)
    assert "errors.grouped" in await stranger.types(asks)
    sql = tmp_path / "guest" / "clickhouse.sql"
    sql.write_text(sql.read_text().replace("change me", PASSWORD))
    await stranger.types(administrators)
    await administer(brokers[0], stranger.noted("noted"))
    for server, (host, statements_of) in zip(shards, stranger.noted("statements"), strict=True):
        assert host == f"ch{shards.index(server) + 1}"
        await asyncio.to_thread(let_in, server, statements_of)
    created = await stranger.types(operator)
    assert "MISSING" not in created
    [token] = re.findall(r"svc_pk_\w+", created)
    await stranger.types(processes)
    for name in stranger.ports:
        await eventually(partial(stranger.is_ready, name), 120)
    answers = await stranger.types(sends, **{"svc_pk_...": token})
    assert "202" in answers
    [project] = re.findall(r'"id":"(\d+)"', answers)
    listed = f"curl -s -u admin:PASSWORD http://127.0.0.1:8081/api/v1/projects/{project}/issues"

    async def is_shown() -> bool:
        return "TypeError" in await stranger.types(listed)

    await eventually(is_shown, 60)
    assert time.monotonic() - began < MINUTES * 60
