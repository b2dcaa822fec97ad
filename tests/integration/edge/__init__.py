"""The edge's tests: see the package above for what they need."""
