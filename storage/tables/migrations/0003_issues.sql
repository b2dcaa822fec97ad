-- Issues, their changes, outcomes and projects, as the topics have them; the newest version of a row counts.

-- Tables that collapse equal rows remember no insert (a deduplication window of 0): a server that was killed may remember one without
-- its rows, and would drop the repeat.
CREATE TABLE IF NOT EXISTS issues
(
    project_id UInt32 COMMENT 'Project',
    issue_id UInt64 COMMENT 'The issue that its first fingerprint opened',
    fingerprints Array(UInt64) COMMENT 'Its own and those merged into it',
    error_type LowCardinality(String) COMMENT 'Class of the newest event''s error',
    message String COMMENT 'Message of the newest event',
    culprit String COMMENT 'Where the newest event happened',
    platform LowCardinality(String) COMMENT 'Platform of most of its events',
    status LowCardinality(String) COMMENT 'open, resolved, ignored; ignored until a time may have ended since',
    regressed UInt8 COMMENT '1: open again after it was resolved',
    first_seen DateTime64(3, 'UTC') COMMENT 'Time of its oldest event',
    last_seen DateTime64(3, 'UTC') COMMENT 'Time of its newest event',
    events UInt64 COMMENT 'Events of its life',
    users UInt64 COMMENT 'Distinct users of its life, an estimate',
    first_release LowCardinality(String) COMMENT 'Release of its oldest event',
    last_release LowCardinality(String) COMMENT 'Release of its newest event',
    environments Array(String) COMMENT 'Environments that it was seen in',
    releases Array(String) COMMENT 'Releases that it was seen in, the 100 latest',
    assignee String COMMENT 'Person who looks after it; empty if unassigned',
    resolved_in String COMMENT 'Release that has the fix, or next',
    ignore_until String COMMENT 'JSON: the time, events or users that reopen it',
    last_event UInt128 COMMENT 'Id of its newest event',
    grouping_version LowCardinality(String) COMMENT 'Version of the grouping',
    grouping_rule LowCardinality(String) COMMENT 'Rule of the grouping',
    grouping_parts Array(String) COMMENT 'Parts of which the fingerprint was made',
    merged_into UInt64 COMMENT 'Issue that shows it now; 0 for itself',
    version UInt64 COMMENT 'Grows with every change; the greatest counts',
    deleted UInt8 COMMENT '1 if it was removed',
    escalated DateTime64(3, 'UTC') COMMENT 'When its rate last rose far above its own past; 1970 for never'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (project_id, issue_id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 0
COMMENT 'Records of the topic issues, the newest of each with FINAL';

-- The id identifies the cause of a change, so a change that is written again collapses.
CREATE TABLE IF NOT EXISTS issue_activity
(
    project_id UInt32 COMMENT 'Project',
    issue_id UInt64 COMMENT 'Issue that was changed',
    at DateTime64(3, 'UTC') COMMENT 'Time of the change; if an event caused it, the time of its receipt',
    id String COMMENT 'Made of the cause of the change',
    kind LowCardinality(String) COMMENT 'created, regressed, resolved, ignored, reopened, merged, unmerged, assigned, commented, seenInRelease, seenInEnvironment, usersReached, escalated',
    by String COMMENT 'Who asked for it; system where an event caused it',
    data String COMMENT 'More of the change, as JSON',
    version UInt64 COMMENT 'Version of the issue after the change'
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, issue_id, at, id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 0
COMMENT 'Changes of issues, each once with FINAL';

-- The key is a process's flush, so counts that are written again collapse.
CREATE TABLE IF NOT EXISTS outcomes
(
    project_id UInt32 COMMENT 'Project',
    minute DateTime('UTC') COMMENT 'Minute of the decision, by the server''s clock',
    sdk LowCardinality(String) COMMENT 'Client library as name/version',
    outcome LowCardinality(String) COMMENT 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; ruleSkipped and revokedToken are none of an event: leave them out of sums',
    reason LowCardinality(String) COMMENT 'Why it was refused or dead-lettered; of ruleSkipped tooExpensive or failed, / and the rule; of revokedToken the end of the token',
    source String COMMENT 'Process that counted',
    sequence UInt64 COMMENT 'Its flush: the same source and sequence twice is a repeat',
    count UInt64 COMMENT 'How many events or refused requests',
    example String COMMENT 'Response to the sender of one of them, with release and id of the event; empty without one'
)
ENGINE = ReplacingMergeTree
PARTITION BY toStartOfMonth(minute)
ORDER BY (project_id, minute, sdk, outcome, reason, source, sequence)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Outcomes of events and requests, each flush once with FINAL';

CREATE TABLE IF NOT EXISTS projects
(
    project_id UInt32 COMMENT 'Project',
    name String COMMENT 'Display name',
    created DateTime64(3, 'UTC') COMMENT 'When it was created',
    retention_days UInt16 COMMENT 'Days for which its events are kept',
    payload_days UInt16 COMMENT 'Days for which payloads are kept',
    rate_limit UInt32 COMMENT 'Requests a minute for each of its tokens',
    version UInt64 COMMENT 'Grows with every change; the greatest counts',
    deleted UInt8 COMMENT '1 if it was removed'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY project_id
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Projects as the topic projects has them, the newest of each with FINAL';

-- The retention of a project by day: events received under a shorter one are dropped sooner, and aren't missing.
CREATE TABLE IF NOT EXISTS retentions
(
    project_id UInt32,
    day Date,
    retention_days UInt16,
    payload_days UInt16
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, day, retention_days, payload_days)
SETTINGS non_replicated_deduplication_window = 0;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_retentions TO retentions AS
SELECT project_id, toDate(fromUnixTimestamp64Milli(toInt64(version), 'UTC')) AS day, retention_days, payload_days
FROM projects
WHERE deleted = 0;
