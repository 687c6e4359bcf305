"""Privacy ledger and its file."""
