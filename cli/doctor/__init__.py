"""`svc doctor`: checks of the settings and of every dependency."""
