-- The schema, readable as a whole: the sum of `storage/migrations`, which a test compares with this file (ClickHouse 26.2 or newer).
-- Applied by nobody; to change it, add a migration and edit this.

CREATE TABLE ingest
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

CREATE TABLE events
(
    project_id UInt32 CODEC(ZSTD(1)),
    fingerprint UInt64 CODEC(ZSTD(1)),
    ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
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
    user_hash UInt64 CODEC(ZSTD(1)),
    error_type LowCardinality(String),
    message String CODEC(ZSTD(1)),
    files Array(String) CODEC(ZSTD(1)),
    functions Array(String) CODEC(ZSTD(1)),
    tags Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    grouping_version LowCardinality(String),
    grouping_rule LowCardinality(String),
    retention_days UInt16,
    INDEX by_id id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_user user_hash TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_tag arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)) TYPE text(tokenizer = 'array'),
    INDEX by_word lower(message) TYPE text(tokenizer = 'splitByNonAlpha')
)
ENGINE = MergeTree
PARTITION BY (retention_days, toMonday(ts))
ORDER BY (project_id, fingerprint, ts)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE payloads
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

CREATE MATERIALIZED VIEW mv_events TO events AS
SELECT
    project_id, fingerprint, ts, id, received, release, environment, platform, kind, os, os_version, model, locale, sdk,
    user_id, user_hash, error_type, message, files, functions, tags, grouping_version, grouping_rule, retention_days
FROM ingest;

CREATE MATERIALIZED VIEW mv_payloads TO payloads AS
SELECT project_id, id, ts, payload, payload_days
FROM ingest;

CREATE TABLE issue_day
(
    project_id UInt32,
    day Date,
    fingerprint UInt64,
    retention_days UInt16,
    n SimpleAggregateFunction(sum, UInt64),
    first SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    last SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    users AggregateFunction(uniqCombined(12), UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(day))
ORDER BY (project_id, day, fingerprint)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE issue_day_er
(
    project_id UInt32,
    day Date,
    fingerprint UInt64,
    environment LowCardinality(String),
    release LowCardinality(String),
    retention_days UInt16,
    n SimpleAggregateFunction(sum, UInt64),
    first SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    last SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    users AggregateFunction(uniqCombined(12), UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(day))
ORDER BY (project_id, day, fingerprint, environment, release)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE issue_hour
(
    project_id UInt32,
    hour DateTime('UTC'),
    fingerprint UInt64,
    retention_days UInt16,
    n SimpleAggregateFunction(sum, UInt64),
    users AggregateFunction(uniqCombined(12), UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(hour))
ORDER BY (project_id, hour, fingerprint)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE project_hour
(
    project_id UInt32,
    hour DateTime('UTC'),
    retention_days UInt16,
    n SimpleAggregateFunction(sum, UInt64),
    users AggregateFunction(uniqCombined(12), UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(hour))
ORDER BY (project_id, hour)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE tag_day
(
    project_id UInt32,
    day Date,
    k LowCardinality(String),
    v String,
    retention_days UInt16,
    n SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(day))
ORDER BY (project_id, day, k, v)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW mv_issue_day TO issue_day AS
SELECT project_id, toDate(ts) AS day, fingerprint, retention_days, count() AS n, min(ts) AS first, max(ts) AS last,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, day, fingerprint, retention_days;

CREATE MATERIALIZED VIEW mv_issue_day_er TO issue_day_er AS
SELECT project_id, toDate(ts) AS day, fingerprint, environment, release, retention_days, count() AS n, min(ts) AS first,
    max(ts) AS last, uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, day, fingerprint, environment, release, retention_days;

CREATE MATERIALIZED VIEW mv_issue_hour TO issue_hour AS
SELECT project_id, toStartOfHour(ts) AS hour, fingerprint, retention_days, count() AS n,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, hour, fingerprint, retention_days;

CREATE MATERIALIZED VIEW mv_project_hour TO project_hour AS
SELECT project_id, toStartOfHour(ts) AS hour, retention_days, count() AS n,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, hour, retention_days;

CREATE MATERIALIZED VIEW mv_tag_day TO tag_day AS
SELECT project_id, toDate(ts) AS day, k, v, retention_days, count() AS n
FROM (SELECT project_id, ts, tags, retention_days FROM ingest)
ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v
GROUP BY project_id, day, k, v, retention_days;

CREATE TABLE issues
(
    project_id UInt32,
    issue_id UInt64,
    fingerprints Array(UInt64),
    error_type LowCardinality(String),
    message String,
    culprit String,
    platform LowCardinality(String),
    status LowCardinality(String),
    regressed UInt8,
    first_seen DateTime64(3, 'UTC'),
    last_seen DateTime64(3, 'UTC'),
    events UInt64,
    users UInt64,
    first_release LowCardinality(String),
    last_release LowCardinality(String),
    environments Array(String),
    releases Array(String),
    assignee String,
    resolved_in String,
    ignore_until String,
    last_event UInt128,
    grouping_version LowCardinality(String),
    grouping_rule LowCardinality(String),
    grouping_parts Array(String),
    merged_into UInt64,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (project_id, issue_id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 10000;

CREATE TABLE issue_activity
(
    project_id UInt32,
    issue_id UInt64,
    at DateTime64(3, 'UTC'),
    id String,
    kind LowCardinality(String),
    by String,
    data String
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, issue_id, at, id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 10000;

CREATE TABLE outcomes
(
    project_id UInt32,
    minute DateTime('UTC'),
    sdk LowCardinality(String),
    outcome LowCardinality(String),
    reason LowCardinality(String),
    source String,
    sequence UInt64,
    count UInt64
)
ENGINE = ReplacingMergeTree
PARTITION BY toStartOfMonth(minute)
ORDER BY (project_id, minute, sdk, outcome, reason, source, sequence)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE projects
(
    project_id UInt32,
    name String,
    created DateTime64(3, 'UTC'),
    retention_days UInt16,
    payload_days UInt16,
    rate_limit UInt32,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version)
ORDER BY project_id
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE migrations
(
    number UInt32,
    name String,
    applied DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY number;
