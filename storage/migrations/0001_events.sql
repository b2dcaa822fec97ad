-- Events come in through one table that keeps nothing; a view fills each table that does, so that each can be mended alone.

CREATE TABLE IF NOT EXISTS ingest
(
    project_id UInt32,
    fingerprint UInt64,
    ts DateTime64(3, 'UTC'),
    id UInt128,
    received DateTime64(3, 'UTC'),
    release LowCardinality(String),
    environment LowCardinality(String),
    platform LowCardinality(String),
    kind LowCardinality(String),
    os LowCardinality(String),
    os_version LowCardinality(String),
    model LowCardinality(String),
    locale LowCardinality(String),
    sdk LowCardinality(String),
    user_id String,
    user_hash UInt64,
    error_type LowCardinality(String),
    message String,
    files Array(String),
    functions Array(String),
    tags Map(LowCardinality(String), String),
    grouping_version LowCardinality(String),
    grouping_rule LowCardinality(String),
    retention_days UInt16,
    payload_days UInt16,
    payload String
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS events
(
    project_id UInt32 CODEC(ZSTD(1)),
    fingerprint UInt64 CODEC(LZ4),
    ts DateTime64(3, 'UTC') CODEC(Delta, LZ4),
    id UInt128 CODEC(ZSTD(1)),
    received DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    release LowCardinality(String),
    environment LowCardinality(String),
    platform LowCardinality(String),
    kind LowCardinality(String),
    os LowCardinality(String),
    os_version LowCardinality(String),
    model LowCardinality(String),
    locale LowCardinality(String),
    sdk LowCardinality(String),
    user_id String CODEC(ZSTD(1)),
    user_hash UInt64 CODEC(LZ4),
    error_type LowCardinality(String),
    message String CODEC(LZ4),
    files Array(String) CODEC(ZSTD(1)),
    functions Array(String) CODEC(ZSTD(1)),
    tags Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    grouping_version LowCardinality(String),
    grouping_rule LowCardinality(String),
    retention_days UInt16,
    INDEX by_id id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_user user_hash TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY (retention_days, toMonday(ts))
ORDER BY (project_id, fingerprint, ts)
SETTINGS non_replicated_deduplication_window = 10000;

-- from 26.2
ALTER TABLE events
    ADD INDEX IF NOT EXISTS by_tag arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)) TYPE text(tokenizer = 'array');

-- below 26.2
ALTER TABLE events
    ADD INDEX IF NOT EXISTS by_tag arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)) TYPE bloom_filter(0.01) GRANULARITY 1;

CREATE TABLE IF NOT EXISTS payloads
(
    project_id UInt32 CODEC(ZSTD(1)),
    id UInt128 CODEC(ZSTD(1)),
    ts DateTime64(3, 'UTC') CODEC(ZSTD(1)),
    payload String CODEC(NONE),
    payload_days UInt16
)
ENGINE = MergeTree
PARTITION BY (payload_days, toMonday(ts))
ORDER BY (project_id, id)
SETTINGS index_granularity = 256, min_compress_block_size = 262144, max_compress_block_size = 524288,
    non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_events TO events AS
SELECT
    project_id, fingerprint, ts, id, received, release, environment, platform, kind, os, os_version, model, locale, sdk,
    user_id, user_hash, error_type, message, files, functions, tags, grouping_version, grouping_rule, retention_days
FROM ingest;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_payloads TO payloads AS
SELECT project_id, id, ts, payload, payload_days
FROM ingest;
