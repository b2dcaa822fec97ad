"""Random `kill -9`s at full load, then the proof that every event was counted exactly once."""
