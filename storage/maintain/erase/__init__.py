"""Erasure of a user's events, or of a whole project, from all tables (`docs/decisions/audit-rebuild-erase.md`)."""
