"""Writers over three servers: each event once, on the server of its partition, also while servers and writers die."""

import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from cli.__main__ import svc
from schemas.read_api import Artifact
from storage.artifact_store import ArtifactStore
from storage.client import Client, open_client, scalar
from storage.errors import AnotherServer
from storage.read.artifacts import FindArtifacts, GetArtifact, ListArtifacts
from storage.read.reader import Reader
from storage.server_identity import check_server
from storage.shards import WHOLE
from storage.tables.analyst_views import VIEWS
from storage.tables.migrations.migrate import create_database, migrate, statements
from storage.write.running_audit import Auditor
from storage.write.writer_metrics import WriterMetrics
from tests.eventually import eventually
from tests.integration.storage.grouped import Writer, ended, exactly, whole
from tests.integration.storage.shards.conftest import COUNT
from tests.integration.storage.shards.spread_stage import SpreadStage
from tests.shard_servers import CLUSTER, ShardServer

pytestmark = pytest.mark.slow


@pytest.fixture
async def stage(kafka_bootstrap: str, urls: list[str], topic_prefix: str, tmp_path: Path) -> SpreadStage:
    return await SpreadStage(kafka_bootstrap, urls, topic_prefix, tmp_path).prepare()


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[Client]]:
    made = [open_client(url) for url in urls]
    yield made
    for client in made:
        client.close()


def stored(clients: list[Client]) -> list[int]:
    return [int(scalar(client, "SELECT count() FROM events")) for client in clients]


async def test_a_dead_server_holds_up_its_own_partitions_and_no_event_is_lost_or_doubled(
    stage: SpreadStage, clients: list[Client], servers: list[ShardServer]
) -> None:
    await stage.produce(30)
    first, second = stage.writer("0"), stage.writer("1")
    with ended(first, second):
        assert await whole(stage) == exactly(stage.total)
        before = stored(clients)
        assert before == stage.on_shard
        assert min(before) > 0
        await eventually(lambda: {writer.get("readyz")[0] for writer in (first, second)} == {200})

        servers[1].kill()
        await stage.produce(30)
        alive = [clients[0], clients[2]]
        expected = [stage.on_shard[number] for number in (0, 2)]
        await eventually(lambda: stored(alive) == expected, 120)
        waiting = await eventually(lambda: [writer for writer in (first, second) if _waits(writer, 2)])
        for writer in waiting:
            assert _waits(writer, 1) is False
            writer.kill()
            writer.restart()
        # The other servers go on storing, and a rollout of writers goes on too.
        for writer in (first, second):
            await eventually(partial(_is_ready, writer), 60)
            await eventually(partial(_misses, writer, 2))
        servers[1].start(120)
        assert await whole(stage, 120) == exactly(stage.total)
        assert stored(clients) == stage.on_shard


async def test_the_audit_and_the_views_for_analysts_read_all_servers(
    stage: SpreadStage, clients: list[Client], urls: list[str]
) -> None:
    before = sum(stored(clients))
    await stage.produce(10)
    writer = stage.writer()
    with ended(writer):
        await eventually(lambda: sum(stored(clients)) == before + stage.total, 120)
        assert await Auditor(stage.settings, WriterMetrics(CollectorRegistry())).audit() != "failed"
    reading = open_client(urls[-1] + WHOLE)
    settings = {"distributed_product_mode": "global"}
    for view in VIEWS:
        reading.command(f"SELECT * FROM {view} LIMIT 1 FORMAT Null", settings=settings)
    assert scalar(reading, "SELECT count() FROM analyst_events", settings=settings) == before + stage.total
    reading.close()


def _is_ready(writer: Writer) -> bool:
    return writer.get("readyz")[0] == 200


def _misses(writer: Writer, shard: int) -> bool:
    return writer.health(f"clickhouse-{shard}").get("ok") is False


def _waits(writer: Writer, shard: int) -> bool:
    return writer.health(f"events-{shard}").get("ok") is False


async def test_a_source_map_is_on_the_first_server_and_found_over_all(urls: list[str]) -> None:
    store, project = ArtifactStore([urls[0]]), secrets.randbelow(1 << 30)
    artifact = Artifact(
        release="shop@1+1",
        path="app.js",
        kind="sourceMap",
        debug_id="",
        digest="d",
        bytes=9,
        stored_bytes=3,
        uploaded_at="2026-01-01T00:00:00.000Z",
        expires_at="2099-01-01T00:00:00.000Z",
    )
    reader = Reader.open([urls[2] + WHOLE])
    for content in (b"old", b"\xff\x00\n"):
        await store.put(project, artifact, content)
    assert await reader.read(GetArtifact(project, "d")) == b"\xff\x00\n"
    assert await reader.read(ListArtifacts(project)) == [artifact]
    assert [link.digest for link in await reader.read(FindArtifacts(project, "", ["app.js"]))] == ["d"]
    await store.delete(project, [artifact], [artifact])
    assert await reader.read(ListArtifacts(project)) == []
    assert await reader.read(GetArtifact(project, "d")) == b""
    await reader.close()


def test_a_server_at_another_place_is_refused(urls: list[str]) -> None:
    check_server(urls[1], f"2/{COUNT}")
    for shard in (f"1/{COUNT}", "2/4", "1/1"):
        with pytest.raises(AnotherServer, match=f"prepared as shard 2/{COUNT}"):
            migrate(urls[1], shard=shard)
        with pytest.raises(AnotherServer, match="can't change"):
            check_server(urls[1], shard)


def test_the_printed_statements_prepare_each_server(servers: list[ShardServer], tmp_path: Path) -> None:
    name = f"test_printed_{secrets.token_hex(4)}"
    urls = [urlsplit(server.url())._replace(path=f"/{name}").geturl() for server in servers]
    given = {"SVC_CLICKHOUSE_SHARDS": ",".join(urls), "SVC_CLICKHOUSE_CLUSTER": CLUSTER}
    printed = CliRunner().invoke(svc, ["--data-dir", str(tmp_path), "migrate", "--print"], env=given)
    assert printed.exit_code == 0, printed.output
    blocks = yaml.safe_load(printed.stdout)["sql"]
    assert list(blocks) == [f"{number + 1}/{COUNT}" for number in range(COUNT)]
    for url, (shard, sql) in zip(urls, blocks.items(), strict=True):
        create_database(url)
        client = open_client(url)
        for statement in statements(sql):
            if statement.startswith("USE "):
                client.database = statement.removeprefix("USE ")
            else:
                client.command(statement)
        client.close()
        assert migrate(url, shard=shard) == []
    reading = open_client(urls[0] + WHOLE)
    assert scalar(reading, "SELECT count() FROM analyst_events") == 0
    reading.close()
