"""From valid events to Kafka, or to the disk spool while Kafka is unavailable."""
