"""Validation of events: a fast path for valid ones, and a full path that repairs or lists violations."""
