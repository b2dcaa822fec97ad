"""Read calls about events, and the payloads that they show."""
