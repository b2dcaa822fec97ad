-- Views for analysts: stable, documented columns, with merged issues as one. Each column has a COMMENT.

-- Which issue shows a fingerprint now, with merged issues as one.
CREATE VIEW IF NOT EXISTS issue_of AS
SELECT project_id, fingerprint, leftPad(lower(hex(min(issue_id))), 16, '0') AS issue_id
FROM
(
    SELECT project_id, issue_id, arrayJoin(fingerprints) AS fingerprint
    FROM issues FINAL
    WHERE deleted = 0 AND merged_into = 0
)
GROUP BY project_id, fingerprint;

CREATE VIEW IF NOT EXISTS analyst_events
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
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
    sdk LowCardinality(String) COMMENT 'Client library as name/version',
    user_id String COMMENT 'The application''s own id of the user; empty where none was set',
    error_type LowCardinality(String) COMMENT 'Class of the outermost error',
    message String COMMENT 'Message of the outermost error',
    files Array(String) COMMENT 'Distinct files of all frames, causes included, at most 64',
    functions Array(String) COMMENT 'Distinct functions of all frames, causes included, at most 64',
    tags Map(LowCardinality(String), String) COMMENT 'Tags; a missing key reads as the empty string',
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
COMMENT 'One row per event, exactly once: count() is right';

CREATE VIEW IF NOT EXISTS analyst_issues
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    issue_id String COMMENT '16 hexadecimal digits, as in the pages'' addresses and in the read API',
    fingerprints Array(String) COMMENT 'Fingerprints of the issue, with those merged into it',
    error_type LowCardinality(String) COMMENT 'Class of the newest event''s error',
    message String COMMENT 'Message of the newest event',
    culprit String COMMENT 'Where the newest event happened',
    platform LowCardinality(String) COMMENT 'Platform of most of its events',
    status LowCardinality(String) COMMENT 'open, resolved, ignored, as it is now: an issue that is ignored until a time is open after it',
    regressed Bool COMMENT 'Open again because it came back after it was resolved',
    first_seen DateTime64(3, 'UTC') COMMENT 'Time of its oldest event',
    last_seen DateTime64(3, 'UTC') COMMENT 'Time of its newest event',
    events UInt64 COMMENT 'Events of its life, also those past their retention',
    users UInt64 COMMENT 'Distinct users of its life: exact for a few dozen, then within 4 %',
    first_release LowCardinality(String) COMMENT 'Release of its oldest event',
    last_release LowCardinality(String) COMMENT 'Release of its newest event',
    environments Array(String) COMMENT 'Environments that it was seen in',
    releases Array(String) COMMENT 'Releases that it was seen in, the 100 latest',
    assignee String COMMENT 'Who looks after it; empty if unassigned',
    resolved_in String COMMENT 'Release that has the fix, or next; empty where not given',
    ignore_until String COMMENT 'JSON with time, events or users that reopen it; empty where there is none',
    last_event_id UUID COMMENT 'Its newest event',
    grouping_version LowCardinality(String) COMMENT 'Version of the grouping that made its fingerprint',
    grouping_rule LowCardinality(String) COMMENT 'Rule of the grouping that made its fingerprint',
    grouping_parts Array(String) COMMENT 'Parts that the fingerprint was computed from'
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
COMMENT 'One row per issue as it is now; an issue merged into another counts there';

CREATE VIEW IF NOT EXISTS analyst_issue_activity
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    issue_id String COMMENT 'Issue that shows the change now, merged issues as one',
    recorded_issue_id String COMMENT 'Issue that was changed',
    at DateTime64(3, 'UTC') COMMENT 'When; if an event caused it, the time of its receipt',
    activity_id String COMMENT 'Derived from the cause of the change: each change is listed once',
    kind LowCardinality(String) COMMENT 'created, regressed, resolved, ignored, reopened, merged, unmerged, assigned, commented, seenInRelease, seenInEnvironment, usersReached, escalated',
    by String COMMENT 'Who asked for it; system if an event caused it',
    release String COMMENT 'Release of the event that caused it; empty for actions of people',
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
COMMENT 'One row per change of an issue';

CREATE VIEW IF NOT EXISTS analyst_outcomes
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    minute DateTime('UTC') COMMENT 'Minute in which it was decided, by the server''s clock',
    sdk LowCardinality(String) COMMENT 'Client library as name/version',
    outcome LowCardinality(String) COMMENT 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; accepted = stored + duplicate + deadLettered',
    reason LowCardinality(String) COMMENT 'Why it was refused or dead-lettered',
    count UInt64 COMMENT 'Events, or requests refused unread, of this row: always add up, sum(count)',
    example String COMMENT 'One response to a sender, with release and id of the event; empty if there is none'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    o.project_id AS project_id,
    o.minute AS minute,
    o.sdk AS sdk,
    o.outcome AS outcome,
    o.reason AS reason,
    o.count AS count,
    o.example AS example
FROM outcomes AS o FINAL
WHERE o.outcome NOT IN ('ruleSkipped', 'revokedToken')
COMMENT 'Outcomes of everything sent: sum(count)';

CREATE VIEW IF NOT EXISTS analyst_issue_day
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users UInt64 COMMENT 'Distinct users of this row; they do not add up: for several rows use analyst_issue_day_states'
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

CREATE VIEW IF NOT EXISTS analyst_issue_day_states
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over any number of rows'
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

CREATE VIEW IF NOT EXISTS analyst_issue_release_day
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users UInt64 COMMENT 'Distinct users of this row; they do not add up: for several rows use analyst_issue_release_day_states'
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

CREATE VIEW IF NOT EXISTS analyst_issue_release_day_states
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over any number of rows'
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

CREATE VIEW IF NOT EXISTS analyst_release_day
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users UInt64 COMMENT 'Distinct users of this row; they do not add up: for several rows use analyst_release_day_states'
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

CREATE VIEW IF NOT EXISTS analyst_release_day_states
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    day Date COMMENT 'Day (UTC) of the events'' time',
    environment LowCardinality(String) COMMENT 'Environment of the events',
    release LowCardinality(String) COMMENT 'Release of the events',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    first_seen DateTime64(3, 'UTC') COMMENT 'Oldest event of this row: min(first_seen)',
    last_seen DateTime64(3, 'UTC') COMMENT 'Newest event of this row: max(last_seen)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over any number of rows'
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

CREATE VIEW IF NOT EXISTS analyst_issue_hour
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users UInt64 COMMENT 'Distinct users of this row; they do not add up: for several rows use analyst_issue_hour_states'
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

CREATE VIEW IF NOT EXISTS analyst_issue_hour_states
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    issue_id String COMMENT 'Issue that shows the events now: 16 hexadecimal digits',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over any number of rows'
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

CREATE VIEW IF NOT EXISTS analyst_project_hour
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users UInt64 COMMENT 'Distinct users of this row; they do not add up: for several rows use analyst_project_hour_states'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.hour AS hour,
    toInt64(r.n) AS events,
    finalizeAggregation(r.users) AS users
FROM project_hour AS r
COMMENT 'Sums of analyst_events by project and hour, kept up while events arrive; a key can have several rows';

CREATE VIEW IF NOT EXISTS analyst_project_hour_states
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
    hour DateTime('UTC') COMMENT 'Start of the hour of the events'' time',
    events Int64 COMMENT 'Events of this row: always add up, sum(events)',
    users AggregateFunction(uniqCombined(12), UInt64) COMMENT 'State of distinct users: uniqCombinedMerge(12)(users), over any number of rows'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    r.project_id AS project_id,
    r.hour AS hour,
    toInt64(r.n) AS events,
    r.users AS users
FROM project_hour AS r
COMMENT 'As analyst_project_hour, with the users as states that merge over rows; only SQL can read them';

CREATE VIEW IF NOT EXISTS analyst_tag_day
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects',
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

CREATE VIEW IF NOT EXISTS analyst_projects
(
    project_id UInt32 COMMENT 'Project',
    name String COMMENT 'Name',
    created DateTime64(3, 'UTC') COMMENT 'When it was created',
    retention_days UInt16 COMMENT 'Days for which newly arriving events are kept',
    payload_days UInt16 COMMENT 'Days for which newly arriving events are kept as sent',
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
