"""Query strategies: which public rows to query."""
