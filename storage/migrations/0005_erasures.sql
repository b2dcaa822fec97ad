-- Erasures: who asked for which (nobody by name), what they took away by day and issue, and which ids must not come back.

CREATE TABLE IF NOT EXISTS erasures
(
    project_id UInt32,
    id UUID,
    kind LowCardinality(String),
    stage LowCardinality(String),
    salt String,
    digest String,
    by String,
    begun DateTime64(3, 'UTC'),
    ended DateTime64(3, 'UTC'),
    report String,
    version UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (project_id, id);

CREATE TABLE IF NOT EXISTS erased_counts
(
    project_id UInt32,
    day Date,
    fingerprint UInt64,
    erasure UUID,
    n UInt64
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, day, fingerprint, erasure);

CREATE TABLE IF NOT EXISTS erased_events
(
    project_id UInt32,
    id UInt128,
    day Date
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(day)
ORDER BY (project_id, id)
TTL day + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS erasing
(
    erasure UUID,
    project_id UInt32,
    id UInt128,
    fingerprint UInt64,
    ts DateTime64(3, 'UTC'),
    received DateTime64(3, 'UTC')
)
ENGINE = MergeTree
PARTITION BY erasure
ORDER BY (toMonday(ts), id);

CREATE TABLE IF NOT EXISTS erasing_tags
(
    erasure UUID,
    project_id UInt32,
    day Date,
    k LowCardinality(String),
    v String
)
ENGINE = ReplacingMergeTree
PARTITION BY erasure
ORDER BY (day, k, v);
