-- The server that was migrated, so that another one behind the same address is noticed.

ALTER TABLE migrations ADD COLUMN IF NOT EXISTS server String;
