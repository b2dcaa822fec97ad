"""`svc migrate` where servers have replicas: one that is down holds up none of the others."""

from typing import Any

import pytest
from click.testing import CliRunner

from broker.topics import TopicsReport
from cli import migrate as command
from cli.__main__ import svc
from schemas.environment import load
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError
from storage.tables.migrations import migrate as schema

A, B, C, D = (f"http://{name}:8123/svc?replicas=2" for name in "abcd")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The created tables by server; the replica `b` doesn't answer."""
    found: list[tuple[str, ...]] = []

    def migrate(url: str, *, shard: str, moved: bool, others: list[str]) -> list[Any]:
        found.append(("first", url, shard, *others))
        return []

    def copy_schema(first: str, url: str) -> None:
        if url == B:
            raise ClickHouseError("no answer")
        found.append(("copy", first, url))

    async def ensure_topics(_: MigrateSettings, *, grouped_events: bool) -> TopicsReport:
        return TopicsReport([], [], [])

    monkeypatch.setattr(schema, "migrate", migrate)
    monkeypatch.setattr(schema, "copy_schema", copy_schema)
    monkeypatch.setattr(command, "ensure_topics", ensure_topics)
    monkeypatch.setattr(
        command, "create_distributed", lambda url, whole, _: found.append(("whole", url, whole))
    )
    return found


def test_each_replica_gets_the_tables_of_the_first_of_its_server(
    made: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        "SVC_CLICKHOUSE_SHARDS": "http://a:8123/svc|http://b:8123/svc,http://c:8123/svc|http://d:8123/svc",
        "SVC_CLICKHOUSE_CLUSTER": "events",
    }
    command.create_missing(load(MigrateSettings, given))
    assert made == [
        ("first", A, "1/2", B),
        ("first", C, "2/2", D),
        ("whole", A, A.replace("svc?", "svc_all?")),
        ("whole", C, C.replace("svc?", "svc_all?")),
        ("copy", C, D),
        ("whole", D, D.replace("svc?", "svc_all?")),
    ]
    assert "replica of shard 1/2: " in capsys.readouterr().out
    run = CliRunner().invoke(svc, ["migrate"], env=given | {"SVC_KAFKA_BOOTSTRAP": "kafka:9092"})
    assert run.exit_code == 0, run.output
    assert "replicas are experimental" in run.stderr
