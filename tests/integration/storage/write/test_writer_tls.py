"""A writer as a process of its own, on a broker with TLS, SASL and ACLs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, ended, exactly, whole
from tests.secured_kafka import GROUP, READ, TOPIC, WRITE, Acl, SecuredKafka
from tests.servers import CACHE

pytestmark = pytest.mark.slow

START_SECONDS = 25
"""A fraction of what it takes to wait for the broker's end of each connection."""


@pytest.fixture
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    kafka = SecuredKafka(tmp_path_factory.mktemp("secured"), CACHE, ["writer"])
    kafka.start(120)
    yield kafka
    kafka.stop()


async def test_a_writer_that_restarts_over_tls_goes_on_at_once(
    kafka: SecuredKafka, clickhouse_database_url: str, topic_prefix: str, tmp_path: Path
) -> None:
    stage = await Stage(kafka.bootstrap, clickhouse_database_url, topic_prefix, tmp_path).prepare()
    rights = ((TOPIC, READ), (TOPIC, WRITE), (GROUP, READ))
    await kafka.allow(*(Acl("writer", kind, topic_prefix, right, prefixed=True) for kind, right in rights))
    await stage.produce(12, repeat=0)
    writer = stage.writer(**kafka.environ("writer"))
    with ended(writer):
        assert await whole(stage) == exactly(stage.total)
        assert writer.stop() == 0
        await stage.produce(12, repeat=0)
        writer.restart()
        await eventually(lambda: writer.get("readyz")[0] == 200, START_SECONDS)
        assert await whole(stage) == exactly(stage.total)
        assert writer.stop() == 0
