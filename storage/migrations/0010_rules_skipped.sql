-- Grouping rules that were skipped on events are counted in the table of outcomes, and are none of them.

CREATE OR REPLACE VIEW analyst_outcomes
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

ALTER TABLE outcomes
    COMMENT COLUMN outcome 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; ruleSkipped is none of an event: leave it out of sums',
    COMMENT COLUMN reason 'Why, for what was refused or set aside; of ruleSkipped tooDear or failed, / and the rule';
