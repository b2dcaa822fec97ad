-- Tables that collapse equal rows remember no insert: a server that was killed may remember one without its rows, and drop the repeat.

ALTER TABLE issues MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE issue_activity MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE outcomes MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE projects MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE retentions MODIFY SETTING non_replicated_deduplication_window = 0;
