"""Proves that one hostile token doesn't harm the projects beside it: `make siege`."""
