-- Source maps of builds, and mapping files of R8: frames are resolved by them when they are read.

-- Each content once. Rows are large, so granules are small.
CREATE TABLE IF NOT EXISTS artifacts
(
    project_id UInt32,
    digest String,
    content String CODEC(NONE),
    version UInt64,
    expires DateTime('UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (project_id, digest)
TTL expires
SETTINGS index_granularity = 4, non_replicated_deduplication_window = 0;

-- Which content a file of a release has. One that was deleted keeps a row as long.
CREATE TABLE IF NOT EXISTS artifact_links
(
    project_id UInt32,
    release String,
    path String,
    kind LowCardinality(String),
    debug_id String,
    digest String,
    size UInt64,
    stored UInt64,
    uploaded DateTime64(3, 'UTC'),
    version UInt64,
    deleted UInt8,
    expires DateTime('UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (project_id, release, path)
TTL expires
SETTINGS non_replicated_deduplication_window = 0;
