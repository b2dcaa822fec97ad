"""Compares accepted, stored and counted events while the pipeline runs, and finds damage."""
