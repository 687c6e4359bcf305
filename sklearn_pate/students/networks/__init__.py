"""Students and encoders that are neural networks."""
