"""Tells people what happens to issues: rules of projects decide which causes are sent, where, and when."""
