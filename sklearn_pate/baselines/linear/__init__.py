"""Linear classifiers trained by perturbed empirical risk minimisation."""
