"""Training of many small networks in one batch."""
