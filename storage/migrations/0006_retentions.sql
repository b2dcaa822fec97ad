-- Which retention a project had on which day: what came under a shorter one is dropped sooner, and is not missing.

CREATE TABLE IF NOT EXISTS retentions
(
    project_id UInt32,
    day Date,
    retention_days UInt16,
    payload_days UInt16
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, day, retention_days, payload_days)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_retentions TO retentions AS
SELECT project_id, toDate(fromUnixTimestamp64Milli(toInt64(version), 'UTC')) AS day, retention_days, payload_days
FROM projects
WHERE deleted = 0;
