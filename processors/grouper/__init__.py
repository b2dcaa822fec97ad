"""The grouper: drops repeated ids, fingerprints each event, publishes chunks and increments."""
