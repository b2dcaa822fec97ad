"""Runs everything on one machine: Kafka, ClickHouse and our own processes."""
