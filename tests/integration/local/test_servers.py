"""The servers that all integration tests share."""

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.servers import run_sql


async def test_broker_takes_topics_with_our_prefix(kafka_bootstrap: str, topic_prefix: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(f"{topic_prefix}a", 2, 1)])
        assert f"{topic_prefix}a" in await admin.list_topics()
    finally:
        await admin.close()


def test_database_of_a_test_is_new_and_empty(clickhouse_database_url: str) -> None:
    name = clickhouse_database_url.rsplit("/", 1)[1]
    assert (
        run_sql(clickhouse_database_url, f"SELECT count() FROM system.tables WHERE database = '{name}'")
        == "0\n"
    )
