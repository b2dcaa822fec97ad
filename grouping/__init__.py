"""Which events are one problem: fingerprints and the rules of projects that correct them; pure, and of no process alone."""
