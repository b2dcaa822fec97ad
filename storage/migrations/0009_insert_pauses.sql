-- Who compares tables asks the writers to hold their inserts back for a moment: each row is a pause, in force until a time of the server's clock.

CREATE TABLE IF NOT EXISTS insert_pauses
(
    id UUID,
    version UInt32,
    until DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
TTL toDateTime(until) + INTERVAL 30 DAY;
