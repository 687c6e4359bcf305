"""Reading of features, labels and public rows."""
