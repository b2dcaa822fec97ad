"""Erasing: one user's events, or a whole project, out of every table (`docs/decisions/erasure.md`)."""
