-- Lists and series are read from sums: by issue and by project, by hour and by day, by environment, release and tag.

CREATE TABLE IF NOT EXISTS issue_day
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
ORDER BY (project_id, fingerprint, day)
SETTINGS index_granularity = 64, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS issue_day_er
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
ORDER BY (project_id, fingerprint, day, environment, release)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS issue_hour
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
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS project_hour
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
SETTINGS index_granularity = 64, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS tag_day
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

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_issue_day TO issue_day AS
SELECT project_id, toDate(ts) AS day, fingerprint, retention_days, count() AS n, min(ts) AS first, max(ts) AS last,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, day, fingerprint, retention_days;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_issue_day_er TO issue_day_er AS
SELECT project_id, toDate(ts) AS day, fingerprint, environment, release, retention_days, count() AS n, min(ts) AS first,
    max(ts) AS last, uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, day, fingerprint, environment, release, retention_days;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_issue_hour TO issue_hour AS
SELECT project_id, toStartOfHour(ts) AS hour, fingerprint, retention_days, count() AS n,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, hour, fingerprint, retention_days;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_project_hour TO project_hour AS
SELECT project_id, toStartOfHour(ts) AS hour, retention_days, count() AS n,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, hour, retention_days;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_tag_day TO tag_day AS
SELECT project_id, toDate(ts) AS day, k, v, retention_days, count() AS n
FROM (SELECT project_id, ts, tags, retention_days FROM ingest)
ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v
GROUP BY project_id, day, k, v, retention_days;
