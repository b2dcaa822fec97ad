"""The writer: inserts grouped events, issues, activity and outcomes from Kafka into ClickHouse.

It inserts them in blocks that can be repeated.
"""
