"""Contracts between processes: the event and its limits, topic records, wire errors, settings, codecs.

Imports nothing of ours. A change here that breaks a neighbour is the signal that this package exists to give.
"""
