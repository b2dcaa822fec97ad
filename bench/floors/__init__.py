"""Floors: the least cost of the same work on this machine, with bare libraries or in a fixed, minimal form."""
