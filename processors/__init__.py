"""Processing: deduplicate, group, fold; each stage a deterministic function of its input log."""
