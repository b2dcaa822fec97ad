"""The JSON API under /api/v1 (contract, section 4): a module per resource, each with its operations."""
