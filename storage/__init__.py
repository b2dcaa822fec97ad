"""ClickHouse: its tables, the writer that fills them, the read calls, and maintenance of the stored rows."""
