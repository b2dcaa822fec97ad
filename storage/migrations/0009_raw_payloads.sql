-- Payloads as they were sent, compressed together by the table: smaller, and readable by SQL.
ALTER TABLE payloads MODIFY COLUMN payload String CODEC(ZSTD(1)) COMMENT 'The JSON as it was sent. Versions before stored a frame, compressed with a shared dictionary: schemas/payload.py reads both';

ALTER TABLE payloads MODIFY SETTING min_compress_block_size = 1048576, max_compress_block_size = 2097152;

-- Parts of the last minutes in few files, as a file costs more than its rows: 110 a block of events otherwise.
ALTER TABLE events MODIFY SETTING min_bytes_for_wide_part = 67108864;
