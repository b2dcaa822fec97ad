"""ClickHouse: the schema and its migrations, the writer that fills it, the queries that read it; and the record of projects."""
