"""A real Kafka broker on this machine."""
