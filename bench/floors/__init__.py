"""Floors: what the same work costs at least on this machine, with bare libraries or in a fixed, minimal form."""
