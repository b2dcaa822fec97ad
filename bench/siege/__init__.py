"""Proves that a hostile token doesn't harm other projects: `make siege`."""
