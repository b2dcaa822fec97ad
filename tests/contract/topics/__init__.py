"""What other teams may rely on in the topics."""
