"""Three replicas and a Keeper in containers: a block is on each, and once, also after the first replica is lost.

The engine that tests start themselves has no Keeper, so this needs Docker or a compatible runtime.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from schemas.environment import load
from schemas.settings import MigrateSettings
from storage.client import INSERT_SETTINGS, ClickHouseError, open_client, scalar
from storage.errors import AnotherServer
from storage.exactly_once.missing_rows import complete
from storage.replicas import begin_session
from storage.tables.migrations.migrate import copy_schema, migrate
from tests.integration.storage.exactly_once.test_tokens import block
from tests.servers import await_condition, container_engine_answers

pytestmark = pytest.mark.skipif(not container_engine_answers(), reason="needs containers: no Docker answers")

IMAGE = "clickhouse/clickhouse-server:26.2"
KEEPER = """<keeper_server><tcp_port>9181</tcp_port><server_id>1</server_id>
  <log_storage_path>/var/lib/clickhouse/coordination/log</log_storage_path>
  <snapshot_storage_path>/var/lib/clickhouse/coordination/snapshots</snapshot_storage_path>
  <raft_configuration><server><id>1</id><hostname>keeper</hostname><port>9234</port></server></raft_configuration>
</keeper_server>"""
REPLICA = """<zookeeper><node><host>keeper</host><port>9181</port></node>\
<session_timeout_ms>5000</session_timeout_ms></zookeeper>
<macros><shard>1</shard><replica>ch{number}</replica></macros>\
<interserver_http_host>ch{number}</interserver_http_host>"""


class Cluster:
    """The containers of the replicas, and their addresses."""

    def __init__(self, containers: list[Any], urls: list[str]) -> None:
        self.containers = containers
        self.urls = urls

    def settings(self, *order: int) -> MigrateSettings:
        shards = "|".join(self.urls[number] for number in order)
        return load(MigrateSettings, {"SVC_CLICKHOUSE_SHARDS": shards})

    def has(self, number: int, events: int) -> bool:
        """Whether a replica has so many events, and counts as many."""
        client = open_client(self.urls[number])
        try:
            stored = (
                scalar(client, "SELECT count() FROM events"),
                scalar(client, "SELECT sum(n) FROM project_hour"),
            )
        finally:
            client.close()
        return stored == (events, events)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network

    password = secrets.token_hex(8)

    def container(name: str, config: str) -> Any:
        file = tmp_path / f"{name}.xml"
        file.write_text(f"<clickhouse>{config}</clickhouse>")
        made = DockerContainer(IMAGE).with_network(network).with_network_aliases(name)
        made.with_exposed_ports(8123).with_volume_mapping(
            str(file), "/etc/clickhouse-server/config.d/test.xml"
        )
        for key, value in {"USER": "svc", "PASSWORD": password, "DB": "svc"}.items():
            made.with_env(f"CLICKHOUSE_{key}", value)
        return stack.enter_context(made)

    def answers(url: str) -> bool:
        try:
            open_client(url).close()
        except ClickHouseError:
            return False
        return True

    with ExitStack() as stack:
        network = stack.enter_context(Network())
        container("keeper", KEEPER)
        containers = [container(f"ch{number}", REPLICA.format(number=number)) for number in (1, 2, 3)]
        urls = [
            f"http://svc:{password}@{one.get_container_host_ip()}:{one.get_exposed_port(8123)}/svc"
            for one in containers
        ]
        for url in urls:
            await_condition(partial(answers, url), "a replica")
        yield Cluster(containers, urls)


def test_a_block_is_on_each_replica_once_also_after_the_first_is_lost(cluster: Cluster) -> None:
    first, *others = cluster.settings(0, 1, 2).replica_urls[0]
    migrate(first, others=others)
    for other in others:
        copy_schema(first, other)
    written = open_client(first)
    token = {**INSERT_SETTINGS, "insert_deduplication_token": "one"}
    for _ in range(2):
        written.insert_arrow("ingest", block(1), settings={**token, **begin_session(written, 5)})
    for number in range(3):
        await_condition(partial(cluster.has, number, 1), "the block on each replica")
    second, *rest = cluster.settings(1, 2, 0).replica_urls[0]
    # It is running still.
    with pytest.raises(AnotherServer):
        migrate(second, moved=True, others=rest)
    cluster.containers[0].get_wrapped_container().kill()
    taking = open_client(second)

    def moved() -> bool:
        try:
            migrate(second, moved=True, others=rest)
        except AnotherServer:
            return False
        return True

    await_condition(moved, "the end of the first one's session with Keeper")
    taking.insert_arrow("ingest", block(1), settings={**token, **begin_session(taking, 5)})
    complete(taking, block(1), "again")
    complete(taking, block(2), "new")
    assert cluster.has(1, 2)
    await_condition(partial(cluster.has, 2, 2), "the new block on the third replica")
    with pytest.raises((AnotherServer, ClickHouseError)):
        begin_session(written, 5)
