"""Compares, repairs and erases stored events while the writer runs."""
