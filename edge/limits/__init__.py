"""What one client may use: requests a minute, processor time, and memory for bodies."""
