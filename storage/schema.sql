-- The schema, readable as a whole: the sum of `storage/migrations`, which a test compares with this file (ClickHouse 26.2 or newer).
-- Applied by nobody; to change it, add a migration and edit this.

CREATE TABLE ingest
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
    payload String
)
ENGINE = Null;

CREATE TABLE events
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
    sdk LowCardinality(String) COMMENT 'Reporting library as name/version',
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
    INDEX by_user user_hash TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_tag arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)) TYPE text(tokenizer = 'array')
)
ENGINE = MergeTree
PARTITION BY (retention_days, toMonday(ts))
ORDER BY (project_id, fingerprint, ts)
SETTINGS non_replicated_deduplication_window = 10000
COMMENT 'Every event once; analysts read it as analyst_events';

CREATE TABLE payloads
(
    project_id UInt32 COMMENT 'Project' CODEC(ZSTD(1)),
    id UInt128 COMMENT 'The event''s id, as in events' CODEC(ZSTD(1)),
    ts DateTime64(3, 'UTC') COMMENT 'The event''s time, as in events' CODEC(ZSTD(1)),
    payload String COMMENT 'The JSON, compressed with a shared dictionary: a frame of schemas/payload.py' CODEC(NONE),
    payload_days UInt16 COMMENT 'Days that it is kept; part of the partition'
)
ENGINE = MergeTree
PARTITION BY (payload_days, toMonday(ts))
ORDER BY (project_id, id)
SETTINGS index_granularity = 256, min_compress_block_size = 262144, max_compress_block_size = 524288,
    non_replicated_deduplication_window = 10000
COMMENT 'Every event as it was sent, for as long as the project wants';

CREATE MATERIALIZED VIEW mv_events TO events AS
SELECT
    project_id, fingerprint, ts, id, received, release, environment, platform, kind, os, os_version, model, locale, sdk,
    user_id, user_hash, error_type, message, files, functions, tags, grouping_version, grouping_rule, retention_days
FROM ingest;

CREATE MATERIALIZED VIEW mv_payloads TO payloads AS
SELECT project_id, id, ts, payload, payload_days
FROM ingest;

CREATE TABLE issue_day
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

CREATE TABLE issue_day_er
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

CREATE TABLE issue_hour
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

CREATE TABLE project_hour
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

CREATE TABLE tag_day
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

CREATE MATERIALIZED VIEW mv_issue_day TO issue_day AS
SELECT project_id, toDate(ts) AS day, fingerprint, retention_days, count() AS n, min(ts) AS first, max(ts) AS last,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, day, fingerprint, retention_days;

CREATE MATERIALIZED VIEW mv_issue_day_er TO issue_day_er AS
SELECT project_id, toDate(ts) AS day, fingerprint, environment, release, retention_days, count() AS n, min(ts) AS first,
    max(ts) AS last, uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, day, fingerprint, environment, release, retention_days;

CREATE MATERIALIZED VIEW mv_issue_hour TO issue_hour AS
SELECT project_id, toStartOfHour(ts) AS hour, fingerprint, retention_days, count() AS n,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, hour, fingerprint, retention_days;

CREATE MATERIALIZED VIEW mv_project_hour TO project_hour AS
SELECT project_id, toStartOfHour(ts) AS hour, retention_days, count() AS n,
    uniqCombinedStateIf(12)(user_hash, user_hash != 0) AS users
FROM ingest
GROUP BY project_id, hour, retention_days;

CREATE MATERIALIZED VIEW mv_tag_day TO tag_day AS
SELECT project_id, toDate(ts) AS day, k, v, retention_days, count() AS n
FROM (SELECT project_id, ts, tags, retention_days FROM ingest)
ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v
GROUP BY project_id, day, k, v, retention_days;

CREATE TABLE issues
(
    project_id UInt32 COMMENT 'Project',
    issue_id UInt64 COMMENT 'The issue that its first fingerprint opened',
    fingerprints Array(UInt64) COMMENT 'Its own and those merged into it',
    error_type LowCardinality(String) COMMENT 'Class of the newest event''s error',
    message String COMMENT 'Message of the newest event',
    culprit String COMMENT 'Where the newest event happened',
    platform LowCardinality(String) COMMENT 'Platform of most of its events',
    status LowCardinality(String) COMMENT 'open, resolved, ignored; rest until a time may have ended since',
    regressed UInt8 COMMENT '1: open again after it was resolved',
    first_seen DateTime64(3, 'UTC') COMMENT 'Time of its oldest event',
    last_seen DateTime64(3, 'UTC') COMMENT 'Time of its newest event',
    events UInt64 COMMENT 'Events of its life',
    users UInt64 COMMENT 'Distinct users of its life, an estimate',
    first_release LowCardinality(String) COMMENT 'Release of its oldest event',
    last_release LowCardinality(String) COMMENT 'Release of its newest event',
    environments Array(String) COMMENT 'Environments that it was seen in',
    releases Array(String) COMMENT 'Releases that it was seen in, the 100 latest',
    assignee String COMMENT 'Who looks after it; empty for nobody',
    resolved_in String COMMENT 'Release that has the fix, or next',
    ignore_until String COMMENT 'JSON: what ends the rest',
    last_event UInt128 COMMENT 'Id of its newest event',
    grouping_version LowCardinality(String) COMMENT 'Version of the grouping',
    grouping_rule LowCardinality(String) COMMENT 'Rule of the grouping',
    grouping_parts Array(String) COMMENT 'What the fingerprint was made of',
    merged_into UInt64 COMMENT 'Issue that shows it now; 0 for itself',
    version UInt64 COMMENT 'Grows with every change; the greatest counts',
    deleted UInt8 COMMENT '1: gone'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (project_id, issue_id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 0
COMMENT 'Records of the topic issues, the newest of each with FINAL';

CREATE TABLE issue_activity
(
    project_id UInt32 COMMENT 'Project',
    issue_id UInt64 COMMENT 'Issue that was changed',
    at DateTime64(3, 'UTC') COMMENT 'When; of what an event caused, the time of its receipt',
    id String COMMENT 'Made of what caused the change',
    kind LowCardinality(String) COMMENT 'created, regressed, resolved, ignored, reopened, merged, unmerged, assigned, commented',
    by String COMMENT 'Who asked for it; system where an event caused it',
    data String COMMENT 'More of the change, as JSON'
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, issue_id, at, id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 0
COMMENT 'Changes of issues, each once with FINAL';

CREATE TABLE outcomes
(
    project_id UInt32 COMMENT 'Project',
    minute DateTime('UTC') COMMENT 'Minute of the decision, by the server''s clock',
    sdk LowCardinality(String) COMMENT 'Reporting library as name/version',
    outcome LowCardinality(String) COMMENT 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; ruleSkipped is none of an event: leave it out of sums',
    reason LowCardinality(String) COMMENT 'Why, for what was refused or set aside; of ruleSkipped tooDear or failed, / and the rule',
    source String COMMENT 'Process that counted',
    sequence UInt64 COMMENT 'Its flush: the same source and sequence twice is a repeat',
    count UInt64 COMMENT 'How many events or refused requests'
)
ENGINE = ReplacingMergeTree
PARTITION BY toStartOfMonth(minute)
ORDER BY (project_id, minute, sdk, outcome, reason, source, sequence)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'What became of events and requests, each flush once with FINAL';

CREATE TABLE projects
(
    project_id UInt32 COMMENT 'Project',
    name String COMMENT 'What people call it',
    created DateTime64(3, 'UTC') COMMENT 'When it was created',
    retention_days UInt16 COMMENT 'Days for which its events are kept',
    payload_days UInt16 COMMENT 'Days for which payloads are kept',
    rate_limit UInt32 COMMENT 'Requests a minute for each of its tokens',
    version UInt64 COMMENT 'Grows with every change; the greatest counts',
    deleted UInt8 COMMENT '1: gone'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY project_id
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Projects as the topic projects has them, the newest of each with FINAL';

CREATE TABLE erasures
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

CREATE TABLE erased_counts
(
    project_id UInt32,
    day Date,
    fingerprint UInt64,
    erasure UUID,
    n UInt64
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, day, fingerprint, erasure);

CREATE TABLE erased_events
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

CREATE TABLE erasing
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

CREATE TABLE erasing_tags
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

CREATE TABLE retentions
(
    project_id UInt32,
    day Date,
    retention_days UInt16,
    payload_days UInt16
)
ENGINE = ReplacingMergeTree
ORDER BY (project_id, day, retention_days, payload_days)
SETTINGS non_replicated_deduplication_window = 0;

CREATE MATERIALIZED VIEW mv_retentions TO retentions AS
SELECT project_id, toDate(fromUnixTimestamp64Milli(toInt64(version), 'UTC')) AS day, retention_days, payload_days
FROM projects
WHERE deleted = 0;

CREATE TABLE insert_pauses
(
    id UUID,
    version UInt32,
    until DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
TTL toDateTime(until) + INTERVAL 30 DAY;

CREATE TABLE migrations
(
    number UInt32,
    name String,
    applied DateTime64(3, 'UTC') DEFAULT now64(3),
    server String
)
ENGINE = ReplacingMergeTree
ORDER BY number;

CREATE VIEW issue_of AS
SELECT project_id, fingerprint, leftPad(lower(hex(min(issue_id))), 16, '0') AS issue_id
FROM
(
    SELECT project_id, issue_id, arrayJoin(fingerprints) AS fingerprint
    FROM issues FINAL
    WHERE deleted = 0 AND merged_into = 0
)
GROUP BY project_id, fingerprint;

CREATE VIEW analyst_events
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    issue_id String COMMENT 'Issue that shows the event now, merged issues as one: 16 hexadecimal digits; empty for some seconds after a new issue''s first event',
    fingerprint String COMMENT 'The grouping''s own key of the event, which merging does not change: 16 hexadecimal digits',
    event_id UUID COMMENT 'The event''s id as the SDK made it (version 7, it carries a time)',
    ts DateTime64(3, 'UTC') COMMENT 'When it happened: the event''s timestamp, or the time of receipt where the device''s clock is off by more than 30 days or 5 minutes into the future',
    received DateTime64(3, 'UTC') COMMENT 'When the server received it',
    release LowCardinality(String) COMMENT 'app@version+build',
    environment LowCardinality(String) COMMENT 'Such as prod, staging, dev',
    platform LowCardinality(String) COMMENT 'javascript, ios, android, python',
    kind LowCardinality(String) COMMENT 'error; from lenient SDKs also anr and nearCrash',
    os LowCardinality(String) COMMENT 'ios, android, web, other',
    os_version LowCardinality(String) COMMENT 'Version of the operating system or browser, as the device says',
    model LowCardinality(String) COMMENT 'Device model; empty where not sent',
    locale LowCardinality(String) COMMENT 'BCP 47, such as de-DE; empty where not sent',
    sdk LowCardinality(String) COMMENT 'Reporting library as name/version',
    user_id String COMMENT 'The application''s own id of the user; empty where none was set',
    error_type LowCardinality(String) COMMENT 'Class of the outermost error',
    message String COMMENT 'Message of the outermost error',
    files Array(String) COMMENT 'Distinct files of all frames, causes included, at most 64',
    functions Array(String) COMMENT 'Distinct functions of all frames, causes included, at most 64',
    tags Map(LowCardinality(String), String) COMMENT 'Tags; a key that is not there reads as the empty string',
    tag_pairs Array(String) COMMENT 'The tags as key=value: has(tag_pairs, ''tier=pro'') is answered by an index',
    grouping_version LowCardinality(String) COMMENT 'Version of the grouping that made the fingerprint',
    grouping_rule LowCardinality(String) COMMENT 'Rule of the grouping that made the fingerprint'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    e.project_id AS project_id,
    i.issue_id AS issue_id,
    leftPad(lower(hex(e.fingerprint)), 16, '0') AS fingerprint,
    reinterpretAsUUID(bitOr(bitShiftLeft(e.id, 64), bitShiftRight(e.id, 64))) AS event_id,
    e.ts AS ts,
    e.received AS received,
    e.release AS release,
    e.environment AS environment,
    e.platform AS platform,
    e.kind AS kind,
    e.os AS os,
    e.os_version AS os_version,
    e.model AS model,
    e.locale AS locale,
    e.sdk AS sdk,
    e.user_id AS user_id,
    e.error_type AS error_type,
    e.message AS message,
    e.files AS files,
    e.functions AS functions,
    e.tags AS tags,
    arrayMap((k, v) -> concat(k, '=', v), mapKeys(e.tags), mapValues(e.tags)) AS tag_pairs,
    e.grouping_version AS grouping_version,
    e.grouping_rule AS grouping_rule
FROM events AS e
LEFT JOIN issue_of AS i ON i.project_id = e.project_id AND i.fingerprint = e.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'One row an event, exactly once: count() is right';

CREATE VIEW analyst_issues
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    issue_id String COMMENT '16 hexadecimal digits, as in the pages'' addresses and in the read API',
    fingerprints Array(String) COMMENT 'Fingerprints of the issue, with those merged into it',
    error_type LowCardinality(String) COMMENT 'Class of the newest event''s error',
    message String COMMENT 'Message of the newest event',
    culprit String COMMENT 'Where the newest event happened',
    platform LowCardinality(String) COMMENT 'Platform of most of its events',
    status LowCardinality(String) COMMENT 'open, resolved, ignored, as it is now: rest that was agreed until a time has ended with it',
    regressed Bool COMMENT 'Open again because it came back after it was resolved',
    first_seen DateTime64(3, 'UTC') COMMENT 'Time of its oldest event',
    last_seen DateTime64(3, 'UTC') COMMENT 'Time of its newest event',
    events UInt64 COMMENT 'Events of its life, also those past their retention',
    users UInt64 COMMENT 'Distinct users of its life: exact for a few dozen, then within 4 %',
    first_release LowCardinality(String) COMMENT 'Release of its oldest event',
    last_release LowCardinality(String) COMMENT 'Release of its newest event',
    environments Array(String) COMMENT 'Environments that it was seen in',
    releases Array(String) COMMENT 'Releases that it was seen in, the 100 latest',
    assignee String COMMENT 'Who looks after it; empty for nobody',
    resolved_in String COMMENT 'Release that has the fix, or next; empty where not given',
    ignore_until String COMMENT 'JSON with time, events or users that end the rest; empty where there is none',
    last_event_id UUID COMMENT 'Its newest event',
    grouping_version LowCardinality(String) COMMENT 'Version of the grouping that made its fingerprint',
    grouping_rule LowCardinality(String) COMMENT 'Rule of the grouping that made its fingerprint',
    grouping_parts Array(String) COMMENT 'What the fingerprint was made of'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    i.project_id AS project_id,
    leftPad(lower(hex(i.issue_id)), 16, '0') AS issue_id,
    arrayMap(f -> leftPad(lower(hex(f)), 16, '0'), i.fingerprints) AS fingerprints,
    i.error_type AS error_type,
    i.message AS message,
    i.culprit AS culprit,
    i.platform AS platform,
    if(
        i.status = 'ignored' AND JSONHas(i.ignore_until, 'time')
            AND parseDateTime64BestEffortOrZero(JSONExtractString(i.ignore_until, 'time'), 3, 'UTC') <= now64(3, 'UTC'),
        'open', i.status
    ) AS status,
    CAST(i.regressed, 'Bool') AS regressed,
    i.first_seen AS first_seen,
    i.last_seen AS last_seen,
    i.events AS events,
    i.users AS users,
    i.first_release AS first_release,
    i.last_release AS last_release,
    i.environments AS environments,
    i.releases AS releases,
    i.assignee AS assignee,
    i.resolved_in AS resolved_in,
    i.ignore_until AS ignore_until,
    reinterpretAsUUID(bitOr(bitShiftLeft(i.last_event, 64), bitShiftRight(i.last_event, 64))) AS last_event_id,
    i.grouping_version AS grouping_version,
    i.grouping_rule AS grouping_rule,
    i.grouping_parts AS grouping_parts
FROM issues AS i FINAL
WHERE i.deleted = 0 AND i.merged_into = 0
COMMENT 'One row an issue as it is now; what was merged into another stands in that one';

CREATE VIEW analyst_issue_activity
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    issue_id String COMMENT 'Issue that shows the change now: where it was merged into another, that one',
    recorded_issue_id String COMMENT 'Issue that was changed',
    at DateTime64(3, 'UTC') COMMENT 'When; of what an event caused, the time of its receipt',
    activity_id String COMMENT 'Made of what caused the change: no change stands twice',
    kind LowCardinality(String) COMMENT 'created, regressed, resolved, ignored, reopened, merged, unmerged, assigned, commented',
    by String COMMENT 'Who asked for it; system where an event caused it',
    release String COMMENT 'Release of the event that caused it; empty for what people do',
    data String COMMENT 'More of the change, as JSON'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    a.project_id AS project_id,
    leftPad(lower(hex(if(m.whole = 0, a.issue_id, m.whole))), 16, '0') AS issue_id,
    leftPad(lower(hex(a.issue_id)), 16, '0') AS recorded_issue_id,
    a.at AS at,
    a.id AS activity_id,
    a.kind AS kind,
    a.by AS by,
    JSONExtractString(a.data, 'release') AS release,
    a.data AS data
FROM issue_activity AS a FINAL
LEFT JOIN
(
    SELECT project_id, issue_id, merged_into AS whole
    FROM issues FINAL
    WHERE deleted = 0 AND merged_into != 0
) AS m ON m.project_id = a.project_id AND m.issue_id = a.issue_id
SETTINGS join_use_nulls = 0
COMMENT 'One row a change of an issue';

CREATE VIEW analyst_outcomes
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    minute DateTime('UTC') COMMENT 'Minute in which it was decided, by the server''s clock',
    sdk LowCardinality(String) COMMENT 'Reporting library as name/version',
    outcome LowCardinality(String) COMMENT 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; accepted = stored + duplicate + deadLettered',
    reason LowCardinality(String) COMMENT 'Why, for what was refused or set aside',
    count UInt64 COMMENT 'How many events, or requests that were refused unread: always add up, sum(count)'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    o.project_id AS project_id,
    o.minute AS minute,
    o.sdk AS sdk,
    o.outcome AS outcome,
    o.reason AS reason,
    o.count AS count
FROM outcomes AS o FINAL
WHERE o.outcome != 'ruleSkipped'
COMMENT 'What became of everything that was sent: sum(count) by what you ask for';

CREATE VIEW analyst_issue_day
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users UInt64 COMMENT 'Distinct users of this row alone, which do not add up: for several rows ask analyst_issue_day_states'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    i.issue_id AS issue_id,
    toInt64(r.n) AS events,
    r.first AS first_seen,
    r.last AS last_seen,
    finalizeAggregation(r.users) AS users
FROM issue_day AS r
LEFT JOIN issue_of AS i ON i.project_id = r.project_id AND i.fingerprint = r.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'Sums of analyst_events by issue and day, kept up while events arrive; a key can have several rows';

CREATE VIEW analyst_issue_day_states
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over as many rows as wanted'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    i.issue_id AS issue_id,
    toInt64(r.n) AS events,
    r.first AS first_seen,
    r.last AS last_seen,
    r.users AS users
FROM issue_day AS r
LEFT JOIN issue_of AS i ON i.project_id = r.project_id AND i.fingerprint = r.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'As analyst_issue_day, with the users as states that merge over rows; only SQL can read them';

CREATE VIEW analyst_issue_release_day
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users UInt64 COMMENT 'Distinct users of this row alone, which do not add up: for several rows ask analyst_issue_release_day_states'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    i.issue_id AS issue_id,
    r.environment AS environment,
    r.release AS release,
    toInt64(r.n) AS events,
    r.first AS first_seen,
    r.last AS last_seen,
    finalizeAggregation(r.users) AS users
FROM issue_day_er AS r
LEFT JOIN issue_of AS i ON i.project_id = r.project_id AND i.fingerprint = r.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'Sums of analyst_events by issue, day, environment and release, kept up while events arrive; a key can have several rows';

CREATE VIEW analyst_issue_release_day_states
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over as many rows as wanted'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    i.issue_id AS issue_id,
    r.environment AS environment,
    r.release AS release,
    toInt64(r.n) AS events,
    r.first AS first_seen,
    r.last AS last_seen,
    r.users AS users
FROM issue_day_er AS r
LEFT JOIN issue_of AS i ON i.project_id = r.project_id AND i.fingerprint = r.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'As analyst_issue_release_day, with the users as states that merge over rows; only SQL can read them';

CREATE VIEW analyst_release_day
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users UInt64 COMMENT 'Distinct users of this row alone, which do not add up: for several rows ask analyst_release_day_states'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    r.environment AS environment,
    r.release AS release,
    toInt64(r.n) AS events,
    r.first AS first_seen,
    r.last AS last_seen,
    finalizeAggregation(r.users) AS users
FROM issue_day_er AS r
COMMENT 'As analyst_issue_release_day without the issue, which makes it several times faster';

CREATE VIEW analyst_release_day_states
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over as many rows as wanted'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    r.environment AS environment,
    r.release AS release,
    toInt64(r.n) AS events,
    r.first AS first_seen,
    r.last AS last_seen,
    r.users AS users
FROM issue_day_er AS r
COMMENT 'As analyst_release_day, with the users as states that merge over rows; only SQL can read them';

CREATE VIEW analyst_issue_hour
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users UInt64 COMMENT 'Distinct users of this row alone, which do not add up: for several rows ask analyst_issue_hour_states'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.hour AS hour,
    i.issue_id AS issue_id,
    toInt64(r.n) AS events,
    finalizeAggregation(r.users) AS users
FROM issue_hour AS r
LEFT JOIN issue_of AS i ON i.project_id = r.project_id AND i.fingerprint = r.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'Sums of analyst_events by issue and hour, kept up while events arrive; a key can have several rows';

CREATE VIEW analyst_issue_hour_states
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over as many rows as wanted'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.hour AS hour,
    i.issue_id AS issue_id,
    toInt64(r.n) AS events,
    r.users AS users
FROM issue_hour AS r
LEFT JOIN issue_of AS i ON i.project_id = r.project_id AND i.fingerprint = r.fingerprint
SETTINGS join_use_nulls = 0
COMMENT 'As analyst_issue_hour, with the users as states that merge over rows; only SQL can read them';

CREATE VIEW analyst_project_hour
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users UInt64 COMMENT 'Distinct users of this row alone, which do not add up: for several rows ask analyst_project_hour_states'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.hour AS hour,
    toInt64(r.n) AS events,
    finalizeAggregation(r.users) AS users
FROM project_hour AS r
COMMENT 'Sums of analyst_events by project and hour, kept up while events arrive; a key can have several rows';

CREATE VIEW analyst_project_hour_states
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over as many rows as wanted'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.hour AS hour,
    toInt64(r.n) AS events,
    r.users AS users
FROM project_hour AS r
COMMENT 'As analyst_project_hour, with the users as states that merge over rows; only SQL can read them';

CREATE VIEW analyst_tag_day
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    key LowCardinality(String) COMMENT 'Key of the tag',
    value String COMMENT 'Value of the tag',
    events Int64 COMMENT 'Events of this row that carry the tag with this value: always add up, sum(events)'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.day AS day,
    r.k AS key,
    r.v AS value,
    toInt64(r.n) AS events
FROM tag_day AS r
COMMENT 'Sums of analyst_events by tag and day, kept up while events arrive; a key can have several rows';

CREATE VIEW analyst_projects
(
    project_id UInt32 COMMENT 'Project',
    name String COMMENT 'What people call it',
    created DateTime64(3, 'UTC') COMMENT 'When it was created',
    retention_days UInt16 COMMENT 'Days for which its events are kept, for those that arrive from now on',
    payload_days UInt16 COMMENT 'Days for which events are kept as they were sent, for those that arrive from now on',
    rate_limit_per_minute UInt32 COMMENT 'Requests a minute that each of its tokens may send'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    p.project_id AS project_id,
    p.name AS name,
    p.created AS created,
    p.retention_days AS retention_days,
    p.payload_days AS payload_days,
    p.rate_limit AS rate_limit_per_minute
FROM projects AS p FINAL
WHERE p.deleted = 0
COMMENT 'One row a project';
