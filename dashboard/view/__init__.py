"""What pages show, computed from what the reader answers: pure, and safe with hostile content."""
