"""Validation of events: a fast path, the full check, and repairs."""
