"""`svc trace`: what happened to one event."""
