"""Resource limits of clients: request rate, processor time, and memory for bodies."""
