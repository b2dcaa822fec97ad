"""`svc trace`: the path of one event through the pipeline."""
