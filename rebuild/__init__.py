"""Rebuilds the tables of the stopped processors from the logs or from ClickHouse."""
