"""The writer: reads grouped events, issues, activity and outcomes from Kafka and inserts them into ClickHouse in repeatable blocks."""
