"""Everything that speaks Kafka: client options, producers, readers without a group, offsets, topics and rights."""
