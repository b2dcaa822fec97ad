"""The Faust worker: grouper and aggregator, each a deterministic function of its input log."""
