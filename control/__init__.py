"""Changes that people make to projects, rules and issues: pure edits, and the Kafka clients that write them."""
