"""Base classes of private classifiers, and what they share."""
