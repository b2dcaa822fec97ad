"""Benchmarks, each with a floor measured in the same run, and the chaos test."""
