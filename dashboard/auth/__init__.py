"""Signing in: password, session and throttle."""
