"""Sign-in: password, session and throttle."""
