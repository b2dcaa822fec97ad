"""Everything on one machine: starts and supervises Kafka, ClickHouse and our own processes."""
