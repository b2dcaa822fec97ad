"""A real ClickHouse server on this machine."""
