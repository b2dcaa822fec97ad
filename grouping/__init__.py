"""Grouping of events: fingerprints, and projects' rules that correct them. Pure, and shared by all processes."""
