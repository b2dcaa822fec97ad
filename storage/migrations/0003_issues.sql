-- What processors and people know of issues and projects, and how each event ended; the newest version of a row counts.

CREATE TABLE IF NOT EXISTS issues
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

CREATE TABLE IF NOT EXISTS issue_activity
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

CREATE TABLE IF NOT EXISTS outcomes
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

CREATE TABLE IF NOT EXISTS projects
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
