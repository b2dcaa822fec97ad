-- What senders of refused events were answered, and fields that the schema doesn't know.
ALTER TABLE outcomes ADD COLUMN IF NOT EXISTS example String COMMENT 'What the sender of one of them was answered, with release and id of the event; empty where there is none';

ALTER TABLE outcomes COMMENT COLUMN IF EXISTS outcome 'accepted, duplicate, invalid, tooLarge, rateLimited, deadLettered; ruleSkipped, unknownField and revokedToken are none of an event: leave them out of sums';

ALTER TABLE outcomes COMMENT COLUMN IF EXISTS reason 'Why, for what was refused or dead-lettered; of ruleSkipped tooExpensive or failed, / and the rule; of unknownField the field, / and the nearest known one; of revokedToken the end of the token';
