"""Reads, checks and admits an event over HTTP, and answers only when the event is safe."""
