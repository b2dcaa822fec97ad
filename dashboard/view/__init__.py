"""View models and formatting for pages: pure, and safe with hostile content."""
