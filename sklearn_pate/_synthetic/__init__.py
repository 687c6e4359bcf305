"""Synthetic rows, drawn from noisy counts of each column by class."""
