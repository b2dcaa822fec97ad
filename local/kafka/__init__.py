"""A Kafka broker on this machine."""
