"""The privacy ledger and its file."""
