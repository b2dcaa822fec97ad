"""`svc send`: posts events of JSONL files in batches."""
