"""What people change: projects, rules and issues. Edits are pure functions; commands carry them."""
