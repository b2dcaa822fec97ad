"""Keeps each event once in each table.

Its parts are plans, tokens, insert pauses, consistent reads and completion of blocks.
"""
