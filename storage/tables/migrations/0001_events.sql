-- Events and payloads: one row an event, and the event as it was sent.

-- The writer inserts here. The table keeps nothing: views fill the tables that do, so that each can be repaired alone.
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
    payload String,
    pack UInt128
)
ENGINE = Null;

-- Sorted by issue, since lists, series and samples are read by issue; a range of time is found by the weekly partitions.
-- by_id finds one event, and the ids of a block that may be stored already. by_user finds a user's events for an erasure.
-- Partitions by retention: an expired week is dropped whole, without rewriting rows.
-- Parts of the last minutes in few files, as a file costs more than its rows: 110 a block of events otherwise.
CREATE TABLE IF NOT EXISTS events
(
    project_id UInt32 COMMENT 'Project' CODEC(ZSTD(1)),
    fingerprint UInt64 COMMENT 'The grouping''s key; issues are sets of them' CODEC(LZ4),
    ts DateTime64(3, 'UTC') COMMENT 'When it happened: its timestamp if that is believable, else the time of receipt' CODEC(Delta, LZ4),
    id UInt128 COMMENT 'The uuid''s value, big-endian, so that it sorts by time' CODEC(ZSTD(1)),
    received DateTime64(3, 'UTC') COMMENT 'When the server received it' CODEC(Delta, ZSTD(1)),
    release LowCardinality(String) COMMENT 'app@version+build',
    environment LowCardinality(String) COMMENT 'Such as prod, staging, dev',
    platform LowCardinality(String) COMMENT 'javascript, ios, android, python',
    kind LowCardinality(String) COMMENT 'error; from lenient SDKs also anr and nearCrash',
    os LowCardinality(String) COMMENT 'ios, android, web, other',
    os_version LowCardinality(String) COMMENT 'Version of the operating system or browser',
    model LowCardinality(String) COMMENT 'Device model; empty where not sent',
    locale LowCardinality(String) COMMENT 'BCP 47; empty where not sent',
    sdk LowCardinality(String) COMMENT 'Client library as name/version',
    user_id String COMMENT 'The application''s own id of the user; empty where none was set' CODEC(ZSTD(1)),
    user_hash UInt64 COMMENT 'Hash of project and user for counting; 0 where there is no user' CODEC(LZ4),
    error_type LowCardinality(String) COMMENT 'Class of the outermost error',
    message String COMMENT 'Message of the outermost error' CODEC(LZ4),
    files Array(String) COMMENT 'Distinct files of all frames, at most 64' CODEC(ZSTD(1)),
    functions Array(String) COMMENT 'Distinct functions of all frames, at most 64' CODEC(ZSTD(1)),
    tags Map(LowCardinality(String), String) COMMENT 'Tags by key' CODEC(ZSTD(1)),
    grouping_version LowCardinality(String) COMMENT 'Version of the grouping',
    grouping_rule LowCardinality(String) COMMENT 'Rule of the grouping that made the fingerprint',
    retention_days UInt16 COMMENT 'Days that it is kept, by the project when it came; part of the partition',
    INDEX by_id id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_user user_hash TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY (retention_days, toMonday(ts))
ORDER BY (project_id, fingerprint, ts)
SETTINGS non_replicated_deduplication_window = 10000, min_bytes_for_wide_part = 67108864
COMMENT 'Every event once; analysts read it as analyst_events';

-- For tag=value. A bloom filter is 3 to 10 times slower where few events have the tag, but older servers have no text index.
-- from 26.2
ALTER TABLE events
    ADD INDEX IF NOT EXISTS by_tag arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)) TYPE text(tokenizer = 'array');

-- below 26.2
ALTER TABLE events
    ADD INDEX IF NOT EXISTS by_tag arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)) TYPE bloom_filter(0.01) GRANULARITY 1;

-- Sorted by id, since a payload is read for one event. Small granules: a look-up reads 256 payloads at most.
-- Payloads of several events are in one row, so that ClickHouse moves a tenth of their bytes: storage/tables/packs.py.
CREATE TABLE IF NOT EXISTS payloads
(
    project_id UInt32 COMMENT 'Project' CODEC(ZSTD(1)),
    id UInt128 COMMENT 'The event''s id, as in events' CODEC(ZSTD(1)),
    ts DateTime64(3, 'UTC') COMMENT 'The event''s time, as in events' CODEC(ZSTD(1)),
    payload String COMMENT 'The JSON as it was sent, or the pack of several events, or nothing if another row has it: pack says which' CODEC(ZSTD(1)),
    payload_days UInt16 COMMENT 'Days that it is kept; part of the partition',
    pack UInt128 COMMENT 'Of a pack: the event whose row has the payloads of all that name it, compressed together; else 0' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY (payload_days, toMonday(ts))
ORDER BY (project_id, id)
SETTINGS index_granularity = 256, min_compress_block_size = 1048576, max_compress_block_size = 2097152,
    non_replicated_deduplication_window = 10000
COMMENT 'Every event as it was sent, for as long as the project wants';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_events TO events AS
SELECT
    project_id, fingerprint, ts, id, received, release, environment, platform, kind, os, os_version, model, locale, sdk,
    user_id, user_hash, error_type, message, files, functions, tags, grouping_version, grouping_rule, retention_days
FROM ingest;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_payloads TO payloads AS
SELECT project_id, id, ts, payload, payload_days, pack
FROM ingest;
