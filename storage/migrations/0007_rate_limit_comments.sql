-- The rate limit counts requests, not events: what analysts read of it says so.

ALTER TABLE projects
    COMMENT COLUMN rate_limit 'Requests a minute for each of its tokens';

ALTER TABLE analyst_projects
    COMMENT COLUMN rate_limit_per_minute 'Requests a minute that each of its tokens may send';
