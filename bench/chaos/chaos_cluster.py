"""The servers of a run on a cluster: three brokers, and three ClickHouse servers that know each other."""

from pathlib import Path

from local.child import Child
from local.local_server import LocalServer
from local.local_stack import BACKGROUND_NICE, SERVER_SECONDS
from tests.kafka_brokers import COPIES, brokers_of
from tests.shard_servers import CLUSTER, servers_of

SHARDS = 3
DATABASE = "test_chaos"
"""Database with a name that the local user may create."""
PARTITIONS = 6


def cluster(data_dir: Path, cache: Path) -> tuple[list[Child], dict[str, str]]:
    """The servers as children, and the variables to reach them."""
    brokers = brokers_of(data_dir, cache)
    shards = servers_of(data_dir, SHARDS)
    children = [
        *(_child("kafka", number, broker, 0) for number, broker in enumerate(brokers)),
        *(_child("clickhouse", number, shard, BACKGROUND_NICE) for number, shard in enumerate(shards)),
    ]
    return children, {
        "SVC_KAFKA_BOOTSTRAP": ",".join(broker.bootstrap for broker in brokers),
        "SVC_CLICKHOUSE_SHARDS": ", ".join(shard.url(database=DATABASE) for shard in shards),
        "SVC_CLICKHOUSE_CLUSTER": CLUSTER,
        "SVC_TOPIC_REPLICATION": str(COPIES),
        "SVC_TOPIC_PARTITIONS": str(PARTITIONS),
    }


def _child(kind: str, number: int, server: LocalServer, nice: int) -> Child:
    return Child(
        kind if number == 0 else f"{kind}{number + 1}",
        server.prepare,
        server.log,
        server.ready,
        start_seconds=SERVER_SECONDS,
        data=server.directory,
        nice=nice,
    )
