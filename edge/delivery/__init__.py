"""From an accepted event to Kafka: chunks, the producer, and the spool while Kafka is unavailable."""
