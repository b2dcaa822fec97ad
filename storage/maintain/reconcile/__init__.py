"""Finds and repairs rows that ClickHouse lacks or has twice."""
