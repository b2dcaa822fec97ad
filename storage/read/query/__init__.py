"""A parsed query, its range and its page, as SQL."""
