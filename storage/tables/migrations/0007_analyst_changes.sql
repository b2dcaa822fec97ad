-- The analysts' view of who changed what.

CREATE VIEW IF NOT EXISTS analyst_changes
(
    project_id UInt32 COMMENT 'Project; its name is in analyst_projects. 0 for sign-ins',
    at DateTime64(3, 'UTC') COMMENT 'When',
    change_id String COMMENT 'Each change is listed once',
    kind LowCardinality(String) COMMENT 'projectCreated, projectChanged, tokenCreated, tokenRevoked, keyCreated, keyRevoked, rulesChanged, notificationsChanged, viewsChanged, discardChanged, ownersChanged, sourceMapsUploaded, sourceMapsDeleted, projectErased, userErased, signedIn, changeUnconfirmed',
    by String COMMENT 'Who changed it',
    via LowCardinality(String) COMMENT 'page, api, command',
    before String COMMENT 'JSON with the changed fields before it, at most 2,000 characters; empty for a new project and an erased one',
    after String COMMENT 'The same after it; of a sign-in the way, of changeUnconfirmed the change that may not have been made'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    c.project_id AS project_id,
    c.at AS at,
    c.id AS change_id,
    c.kind AS kind,
    c.by AS by,
    c.via AS via,
    c.before AS before,
    c.after AS after
FROM changes AS c FINAL
COMMENT 'Who changed what in a project, erasures and sign-ins; recorded before the change is made';
