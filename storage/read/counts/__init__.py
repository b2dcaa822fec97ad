"""Read calls that count events: over time, by tag, by release, by outcome."""
