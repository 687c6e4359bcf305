"""Shards of private rows, and the teachers that are trained on them."""
