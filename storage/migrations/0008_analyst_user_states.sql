-- Views of sums have plain columns, which every client reads; states of users stand in views of their own.

CREATE VIEW IF NOT EXISTS analyst_issue_day_states
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

CREATE VIEW IF NOT EXISTS analyst_issue_release_day_states
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

CREATE VIEW IF NOT EXISTS analyst_release_day_states
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

CREATE VIEW IF NOT EXISTS analyst_issue_hour_states
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

CREATE VIEW IF NOT EXISTS analyst_project_hour_states
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

CREATE OR REPLACE VIEW analyst_issue_day
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

CREATE OR REPLACE VIEW analyst_issue_release_day
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

CREATE OR REPLACE VIEW analyst_release_day
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

CREATE OR REPLACE VIEW analyst_issue_hour
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

CREATE OR REPLACE VIEW analyst_project_hour
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
