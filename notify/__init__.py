"""Notifications: rules of projects choose causes, channels and times."""
