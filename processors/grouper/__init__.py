"""The grouper: drops repeated ids, fingerprints each event, writes chunks and increments."""
