"""Source maps and R8 mappings: checked when they are uploaded, applied to frames when an event is read."""
