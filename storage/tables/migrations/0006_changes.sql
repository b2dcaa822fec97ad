-- Who changed what: changes of projects, erasures and sign-ins.

-- A record that is written again collapses. An erasure of a project leaves rows without texts, which win over repeats.
CREATE TABLE IF NOT EXISTS changes
(
    project_id UInt32 COMMENT 'Project; 0 for sign-ins',
    id String COMMENT 'Made of the request, if it had an idempotency key',
    kind LowCardinality(String) COMMENT 'What was changed, as in analyst_changes',
    by String COMMENT 'Who changed it',
    via LowCardinality(String) COMMENT 'page, api, command',
    at DateTime64(3, 'UTC') COMMENT 'Time of the change',
    before String COMMENT 'JSON: the changed fields before it',
    after String COMMENT 'JSON: the changed fields after it',
    erased UInt8 COMMENT '1 if the project was erased, and with it before and after'
)
ENGINE = ReplacingMergeTree(erased)
ORDER BY (project_id, id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 0
COMMENT 'Who changed what, each change once with FINAL';
