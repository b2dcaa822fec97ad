-- Bookkeeping: erasures, and pauses of inserts.

-- Who asked for which erasure, by a salted hash of the user, and how far it is. Kept forever.
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

-- How many events an erasure removed, by day and fingerprint: they still count in their issue, and are not missing.
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

-- Ids of erased events: one that is sent or read again isn't stored again.
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

-- Events and tags of an erasure that is under way: its partition is dropped at the end, with the ids that it named.
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

-- A command that compares tables asks the writers to wait: each row is a pause, in force until a time of the server's clock.
CREATE TABLE IF NOT EXISTS insert_pauses
(
    id UUID,
    version UInt32,
    until DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
TTL toDateTime(until) + INTERVAL 30 DAY;

-- Inserts into a slow server may come late: comparisons of tables wait for them until this time of the server's clock.
CREATE TABLE IF NOT EXISTS announced_inserts
(
    until DateTime64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY until
TTL toDateTime(until) + INTERVAL 1 DAY;
