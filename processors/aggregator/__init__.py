"""The aggregator: folds increments and commands into one record an issue."""
