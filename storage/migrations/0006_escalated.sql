-- When an issue's rate last rose far above its own past, for `is:escalating`.
ALTER TABLE issues ADD COLUMN IF NOT EXISTS escalated DateTime64(3, 'UTC') COMMENT 'When its rate last rose far above its own past; 1970 for never';

ALTER TABLE issue_activity COMMENT COLUMN IF EXISTS kind 'created, regressed, resolved, ignored, reopened, merged, unmerged, assigned, commented, seenInRelease, seenInEnvironment, usersReached, escalated';
