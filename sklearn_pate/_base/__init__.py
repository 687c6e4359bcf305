"""What all private classifiers share."""
