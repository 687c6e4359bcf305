"""Accuracy and agreement of teachers, from their vote counts."""

import numpy as np
from record import summary

from sklearn_pate.mechanisms import LNMax

GAMMA = 0.05  # Laplace noise of scale 20


def vote_figures(counts, y, n_teachers):
    """Measure accuracy and agreement of teachers."""
    ranked = np.sort(counts, axis=1)
    return {
        "mean_accuracy": float(counts[np.arange(len(y)), y].mean() / n_teachers),
        "gap": float((ranked[:, -1] - ranked[:, -2]).mean() / n_teachers),
        "plurality": float(np.mean(counts.argmax(axis=1) == y)),
    }


def answers_at_scale_20(counts, y):
    """Measure how many of the answers with Laplace noise are right, five times."""
    return summary(np.mean(LNMax(gamma=GAMMA).answer(counts) == y) for _ in range(5))
