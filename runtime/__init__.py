"""Supervises child processes, and returns freed memory to the system."""
