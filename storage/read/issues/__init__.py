"""Read calls about issues."""
