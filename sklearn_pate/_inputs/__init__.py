"""Reading and checking of inputs: features, labels, public rows, parameters."""
