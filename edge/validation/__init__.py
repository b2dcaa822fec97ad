"""Which events are accepted: a fast path, the full check, and repairs."""
