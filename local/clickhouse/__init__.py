"""A ClickHouse server on this machine."""
