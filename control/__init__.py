"""Changes that people make to projects, rules and issues: pure edits, and the clients that write them to Kafka."""
