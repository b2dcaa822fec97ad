-- Payloads of several events in one row, so that ClickHouse moves a tenth of their bytes: storage/packs.py.
ALTER TABLE payloads ADD COLUMN IF NOT EXISTS pack UInt128 COMMENT 'Of a pack: the event whose row has the payloads of all that name it, compressed together; else 0' CODEC(ZSTD(1));

ALTER TABLE payloads MODIFY COLUMN payload String CODEC(ZSTD(1)) COMMENT 'The JSON as it was sent, or the pack of several events, or nothing if another row has it: pack says which';

ALTER TABLE ingest ADD COLUMN IF NOT EXISTS pack UInt128;

ALTER TABLE mv_payloads MODIFY QUERY
SELECT project_id, id, ts, payload, payload_days, pack
FROM ingest;
