-- Rollups: sums by issue, project and tag, from which lists and series are read.

-- Sorted by issue, then day: the series of one issue is one range. Small granules, because an issue has few rows.
CREATE TABLE IF NOT EXISTS issue_day
(
    project_id UInt32 COMMENT 'Project',
    day Date COMMENT 'Day (UTC) of the events'' time',
    fingerprint UInt64 COMMENT 'As in events',
    retention_days UInt16 COMMENT 'As in events; part of the partition',
    n SimpleAggregateFunction(sum, UInt64) COMMENT 'Events; a row may hold a difference, so only sums are right',
    first SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Oldest event',
    last SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Newest event',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users, without 0: uniqCombinedMerge(12)'
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(day))
ORDER BY (project_id, fingerprint, day)
SETTINGS index_granularity = 64, non_replicated_deduplication_window = 10000
COMMENT 'Sums by fingerprint and day';

-- The same by environment and release: lists with these filters, and the releases of a project.
CREATE TABLE IF NOT EXISTS issue_day_er
(
    project_id UInt32 COMMENT 'Project',
    day Date COMMENT 'Day (UTC) of the events'' time',
    fingerprint UInt64 COMMENT 'As in events',
    environment LowCardinality(String) COMMENT 'As in events',
    release LowCardinality(String) COMMENT 'As in events',
    retention_days UInt16 COMMENT 'As in events; part of the partition',
    n SimpleAggregateFunction(sum, UInt64) COMMENT 'Events; a row may hold a difference, so only sums are right',
    first SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Oldest event',
    last SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Newest event',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users, without 0: uniqCombinedMerge(12)'
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(day))
ORDER BY (project_id, fingerprint, day, environment, release)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 10000
COMMENT 'Sums by fingerprint, day, environment and release';

-- Sorted by hour: lists of the last hours read all issues of a few hours.
CREATE TABLE IF NOT EXISTS issue_hour
(
    project_id UInt32 COMMENT 'Project',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    fingerprint UInt64 COMMENT 'As in events',
    retention_days UInt16 COMMENT 'As in events; part of the partition',
    n SimpleAggregateFunction(sum, UInt64) COMMENT 'Events; a row may hold a difference, so only sums are right',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users, without 0: uniqCombinedMerge(12)'
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(hour))
ORDER BY (project_id, hour, fingerprint)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 10000
COMMENT 'Sums by fingerprint and hour';

-- The totals of a project, without reading its issues.
CREATE TABLE IF NOT EXISTS project_hour
(
    project_id UInt32 COMMENT 'Project',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    retention_days UInt16 COMMENT 'As in events; part of the partition',
    n SimpleAggregateFunction(sum, UInt64) COMMENT 'Events; a row may hold a difference, so only sums are right',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users, without 0: uniqCombinedMerge(12)'
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(hour))
ORDER BY (project_id, hour)
SETTINGS index_granularity = 64, non_replicated_deduplication_window = 10000
COMMENT 'Sums by hour';

-- Sorted by day, then key: the tags of a project, and the values of one, over some days.
CREATE TABLE IF NOT EXISTS tag_day
(
    project_id UInt32 COMMENT 'Project',
    day Date COMMENT 'Day (UTC) of the events'' time',
    k LowCardinality(String) COMMENT 'Tag''s key',
    v String COMMENT 'Tag''s value',
    retention_days UInt16 COMMENT 'As in events; part of the partition',
    n SimpleAggregateFunction(sum, UInt64) COMMENT 'Events; a row may hold a difference, so only sums are right'
)
ENGINE = AggregatingMergeTree
PARTITION BY (retention_days, toMonday(day))
ORDER BY (project_id, day, k, v)
SETTINGS non_replicated_deduplication_window = 10000
COMMENT 'Sums by tag and day';

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
