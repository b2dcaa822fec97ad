"""Makes the floor's topics and tables, and ends.

A Null table has views that fill events, payloads and six rollups; issues come by themselves.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from bench.floors.pipeline import records
from storage.client import open_client

LOW: Final = "LowCardinality(String)"
COLUMNS: Final = f"""project_id UInt32, ts DateTime64(3, 'UTC'), id UInt128, issue UInt64, release {LOW},
    environment {LOW}, platform {LOW}, os {LOW}, user_hash UInt64, error_type {LOW}, message String,
    tags Map({LOW}, String)"""
NAMES: Final = (
    "project_id", "ts", "id", "issue", "release", "environment", "platform", "os", "user_hash", "error_type",
    "message", "tags", "payload",
)  # fmt: skip
KEYS: Final = {
    "issue_day": ("project_id, toDate(ts) AS day, issue", "project_id, day, issue"),
    "issue_day_er": (
        "project_id, toDate(ts) AS day, issue, environment, release",
        "project_id, day, issue, environment, release",
    ),
    "issue_hour": ("project_id, toStartOfHour(ts) AS hour, issue", "project_id, hour, issue"),
    "project_hour": ("project_id, toStartOfHour(ts) AS hour", "project_id, hour"),
    "issue_total": ("project_id, issue", "project_id, issue"),
}
"""The key of each rollup, as it is computed and by its names."""
SETTINGS: Final = {
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    "max_insert_threads": 1,
    "max_insert_block_size": 1 << 20,
    "min_insert_block_size_rows": 1 << 20,
    "min_insert_block_size_bytes": 1 << 30,
}
_PAIRS: Final = "arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags))"
_STATES: Final = """countState() AS n, minState(ts) AS first, maxState(ts) AS last,
    uniqCombined64State(12)(user_hash) AS users"""
_WINDOW: Final = "non_replicated_deduplication_window = 10000"


def _statements() -> Iterator[str]:
    """Those of all tables, in order."""
    yield f"CREATE TABLE ingest ({COLUMNS}, payload String) ENGINE = Null"
    yield f"""CREATE TABLE events ({COLUMNS}, INDEX by_id id TYPE bloom_filter(0.001) GRANULARITY 1,
        INDEX by_tag {_PAIRS} TYPE text(tokenizer = 'array'),
        INDEX by_word message TYPE text(tokenizer = 'splitByNonAlpha', preprocessor = lower(message)))
        ENGINE = MergeTree PARTITION BY toMonday(ts) ORDER BY (project_id, issue, ts) SETTINGS {_WINDOW}"""
    yield f"""CREATE TABLE payloads
        (project_id UInt32, id UInt128, ts DateTime64(3, 'UTC'), payload String CODEC(NONE))
        ENGINE = MergeTree PARTITION BY toMonday(ts) ORDER BY (project_id, id)
        SETTINGS index_granularity = 256, min_compress_block_size = 262144, max_compress_block_size = 524288,
            {_WINDOW}"""
    yield f"""CREATE TABLE issues (project_id UInt32, issue UInt64, n UInt64, first String, last String,
        type {LOW}, title String, version UInt64)
        ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, issue)"""
    yield "CREATE MATERIALIZED VIEW mv_events TO events AS SELECT * EXCEPT payload FROM ingest"
    yield "CREATE MATERIALIZED VIEW mv_payloads TO payloads AS SELECT project_id, id, ts, payload FROM ingest"
    for name, (key, names) in KEYS.items():
        yield f"""CREATE MATERIALIZED VIEW {name} ENGINE = AggregatingMergeTree ORDER BY ({names})
            SETTINGS {_WINDOW} AS SELECT {key}, {_STATES} FROM ingest GROUP BY {names}"""
    yield f"""CREATE MATERIALIZED VIEW tag_day ENGINE = AggregatingMergeTree ORDER BY (project_id, day, k, v)
        SETTINGS {_WINDOW} AS SELECT project_id, toDate(ts) AS day, k, v, countState() AS n
        FROM (SELECT project_id, ts, tags FROM ingest) ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v
        GROUP BY project_id, day, k, v"""


async def main() -> None:
    """Topics for records of 4 MiB; the last two are compacted."""
    admin = AIOKafkaAdminClient(bootstrap_servers=records.BOOTSTRAP)
    await admin.start()
    large = {"max.message.bytes": str(4 << 20)}
    compacted = {**large, "cleanup.policy": "compact"}
    configs = {name: compacted if name in {"seen", "issues"} else large for name in records.TOPICS}
    await admin.create_topics(
        [NewTopic(name, records.PARTITIONS, 1, topic_configs=each) for name, each in configs.items()]
    )
    await admin.close()
    client = open_client(os.environ["FLOOR_CLICKHOUSE"])
    for statement in _statements():
        client.command(statement)
    client.close()


if __name__ == "__main__":
    asyncio.run(main())
