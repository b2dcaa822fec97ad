"""`svc erase`: removes one user's events, or a whole project, from everything that keeps them."""
