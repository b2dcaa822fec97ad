"""The JSON API under /api/v1 (contract, section 4): one module a resource, each with its table of operations."""
