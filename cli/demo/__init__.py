"""`svc demo`: everything on this machine, with sample events."""
