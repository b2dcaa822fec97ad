"""Doctor against the real servers."""

import asyncio
from urllib.parse import urlsplit

from local.clickhouse_check import check_clickhouse
from local.kafka_check import check_kafka
from schemas.settings import KafkaSettings
from storage.migrate import migrate
from storage.topics import ensure_topics


def test_missing_topics_are_named_until_they_are_created(kafka_bootstrap: str, topic_prefix: str) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    reached, topics = check_kafka(settings)
    assert reached.ok
    assert not topics.ok
    assert f"{topic_prefix}events" in topics.said
    assert topics.mend == "run `svc migrate`"
    asyncio.run(ensure_topics(settings))
    assert all(finding.ok for finding in check_kafka(settings))


def test_broker_without_tls_is_told_apart(kafka_bootstrap: str) -> None:
    (finding,) = check_kafka(
        KafkaSettings(kafka_bootstrap=kafka_bootstrap, kafka_security_protocol="SASL_SSL")
    )
    assert "does not speak TLS" in finding.said
    assert "SVC_KAFKA_SECURITY_PROTOCOL" in finding.mend


def test_broker_that_wants_no_credentials_is_told_apart(kafka_bootstrap: str) -> None:
    settings = KafkaSettings(
        kafka_bootstrap=kafka_bootstrap,
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_username="u",
        kafka_password="p",
    )
    (finding,) = check_kafka(settings)
    assert "does not let us in" in finding.said
    assert "SVC_KAFKA_USERNAME" in finding.mend


def test_schema_is_missing_until_it_is_migrated(clickhouse_database_url: str) -> None:
    version, schema = check_clickhouse(clickhouse_database_url)
    assert version.ok
    assert not schema.ok
    assert schema.mend == "run `svc migrate`"
    migrate(clickhouse_database_url)
    assert all(finding.ok for finding in check_clickhouse(clickhouse_database_url))


def test_wrong_password_and_missing_database_are_told_apart(clickhouse_url: str) -> None:
    parts = urlsplit(clickhouse_url)
    wrong = parts._replace(netloc=f"svc:wrong@{parts.hostname}:{parts.port}").geturl()
    (finding,) = check_clickhouse(wrong)
    assert "user or password is refused" in finding.said
    (finding,) = check_clickhouse(parts._replace(path="/test_nowhere").geturl())
    assert "database does not exist" in finding.said
