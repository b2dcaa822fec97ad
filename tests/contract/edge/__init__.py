"""The edge's tests: see the package above for their requirements."""
