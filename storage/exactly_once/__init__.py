"""Keeps each event once in each table: plans, tokens, insert pauses, consistent reads and completion of blocks."""
