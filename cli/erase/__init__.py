"""`svc erase`: removes one user's events, or a whole project, from all storage."""
