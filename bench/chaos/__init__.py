"""Random `kill -9`s at full load, then a proof that every event was counted exactly once."""
