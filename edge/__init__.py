"""The ingest edge: validates events over HTTP and responds only once they are stored."""
