"""Fixtures: a real Kafka and a real ClickHouse, one of each for all workers of a run.

Each is a container where an engine answers, else our own local server in a temporary directory. One that can't be
started is an error of the test that asked, never a skip. A test that kills, freezes or configures a server starts
its own.
"""

import asyncio
import functools
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlencode, urlsplit

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from local.kafka.container import IMAGE, LISTENER
from local.kafka.container import environment as kafka_environment
from local.kafka.local_kafka import LocalKafka
from local.kafka.probe import brokers
from local.ports import free_port
from tests.run_servers import Start, shared_address
from tests.topics import delete_topics

CACHE = Path(__file__).parent.parent / ".cache"
START_SECONDS = 120


@functools.cache
def container_engine_answers() -> bool:
    """Whether Docker, or a compatible program, can start containers.

    A separate process pings it, because a failed ping of the docker SDK leaves a socket open.
    """
    question = "import docker; docker.from_env(timeout=5).ping()"
    return (
        subprocess.run([sys.executable, "-P", "-c", question], capture_output=True, check=False).returncode
        == 0
    )


def await_condition(condition: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"{what} was not ready after {START_SECONDS} s")
        time.sleep(0.1)


@contextmanager
def _kafka(folder: Path) -> Iterator[str]:
    """A broker without automatic creation of topics."""
    if not container_engine_answers():
        kafka = LocalKafka(folder, CACHE).start(START_SECONDS)
        yield kafka.bootstrap
        kafka.stop()
        return
    from testcontainers.core.container import DockerContainer

    port = free_port()
    container = DockerContainer(IMAGE).with_bind_ports(LISTENER, port)
    for name, value in kafka_environment(port).items():
        container.with_env(name, value)
    with container:
        await_condition(lambda: brokers(port) > 0, "Kafka's container")
        yield f"127.0.0.1:{port}"


class RunClickHouse(LocalClickHouse):
    """A server that compiles no query to machine code, and lets its user back up databases of tests.

    To compile takes a tenth of its CPU, and tests' tables are too small for it.
    """

    def prepare(self) -> list[str]:
        command = super().prepare()
        users = self.directory / "users.xml"
        settings = ("compile_expressions", "compile_aggregate_expressions", "compile_sort_description")
        off = "".join(f"<{name}>0</{name}>" for name in settings)
        text = users.read_text()
        limit, right = "<max_threads>2</max_threads>", "OPTIMIZE ON test_"
        for known, new in ((limit, limit + off), (right, "OPTIMIZE, BACKUP ON test_")):
            assert known in text
            text = text.replace(known, new)
        users.write_text(text)
        return command


@contextmanager
def _clickhouse(folder: Path) -> Iterator[str]:
    if not container_engine_answers():
        server = RunClickHouse(folder).start(START_SECONDS)
        yield server.url()
        server.stop()
        return
    from testcontainers.clickhouse import ClickHouseContainer

    password = secrets.token_hex(8)
    container = ClickHouseContainer(
        "clickhouse/clickhouse-server:26.2", username="svc", password=password, dbname="svc"
    )
    with container:
        yield f"http://svc:{password}@{container.get_container_host_ip()}:{container.get_exposed_port(8123)}/svc"


STARTS: Mapping[str, Start] = {"Kafka": _kafka, "ClickHouse": _clickhouse}


def _address(name: str, config: pytest.Config, folders: pytest.TempPathFactory) -> Iterator[str]:
    if found := shared_address(config, name):
        yield found
        return
    with STARTS[name](folders.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="session")
def kafka_bootstrap(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The `host:port` of a real broker without automatic creation of topics."""
    yield from _address("Kafka", pytestconfig, tmp_path_factory)


@pytest.fixture(scope="session")
def clickhouse_url(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server: `http://user:password@host:port/svc`.

    Databases `test_*` may be created and backed up.
    """
    yield from _address("ClickHouse", pytestconfig, tmp_path_factory)


def run_sql(url: str, sql: str, **settings: str) -> str:
    """Run one statement on the server of `url`, outside of any library under test; the answer as TSV."""
    parts = urlsplit(url)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.hostname}:{parts.port}/?{urlencode(settings)}",
        data=sql.encode(),
        headers={
            "X-ClickHouse-User": unquote(parts.username or ""),
            "X-ClickHouse-Key": unquote(parts.password or ""),
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


@contextmanager
def new_database(clickhouse_url: str) -> Iterator[str]:
    """The address of a new, empty database with a random name, dropped afterwards."""
    name = f"test_{secrets.token_hex(6)}"
    run_sql(clickhouse_url, f"CREATE DATABASE {name} ENGINE = Atomic")
    try:
        yield urlsplit(clickhouse_url)._replace(path=f"/{name}").geturl()
    finally:
        run_sql(clickhouse_url, f"DROP DATABASE {name} SYNC")


@pytest.fixture
def clickhouse_database_url(clickhouse_url: str) -> Iterator[str]:
    """The address of a new, empty database of the test's own."""
    with new_database(clickhouse_url) as url:
        yield url


@pytest.fixture
def topic_prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """A random SVC_TOPIC_PREFIX, so that tests sharing one broker don't meet; its topics are deleted afterwards."""
    prefix = new_prefix()
    yield prefix
    if "kafka_bootstrap" in request.fixturenames:
        asyncio.run(delete_topics(request.getfixturevalue("kafka_bootstrap"), prefix))


def new_prefix() -> str:
    """Another at each call."""
    return f"t{secrets.token_hex(5)}."
