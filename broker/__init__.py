"""Access to Kafka: clients, producers, consumers without a group, offsets, topics and rights."""
