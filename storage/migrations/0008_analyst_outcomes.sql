-- The analysts' view of outcomes with examples, and without what is none of an event.
CREATE OR REPLACE VIEW analyst_outcomes
(
    project_id UInt32 COMMENT 'Project; name and retention stand in analyst_projects',
    minute DateTime('UTC') COMMENT 'Minute in which it was decided, by the server''s clock',
    sdk LowCardinality(String) COMMENT 'Reporting library as name/version',
    outcome LowCardinality(String) COMMENT 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; accepted = stored + duplicate + deadLettered',
    reason LowCardinality(String) COMMENT 'Why, for what was refused or dead-lettered',
    count UInt64 COMMENT 'How many events, or requests that were refused unread: always add up, sum(count)',
    example String COMMENT 'What the sender of one of them was answered, with release and id of the event; empty where there is none'
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
WHERE o.outcome NOT IN ('ruleSkipped', 'unknownField', 'revokedToken')
COMMENT 'What became of everything that was sent: sum(count) by what you ask for';
