"""Strategies that choose the public rows to query."""
