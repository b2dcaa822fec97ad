"""Measurements, each beside a floor of the same run, and the test of everything under random deaths."""
