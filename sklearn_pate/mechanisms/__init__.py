"""Mechanisms that answer queries on vote counts with differential privacy."""

from sklearn_pate.mechanisms._confident import ConfidentGNMax, InteractiveGNMax
from sklearn_pate.mechanisms._mean_scores import MeanScores
from sklearn_pate.mechanisms._mechanism import Mechanism
from sklearn_pate.mechanisms._noisy_max import (
    GNMax,
    GumbelMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.mechanisms._noisy_sum import NoisySum
from sklearn_pate.mechanisms._oracle import Oracle, Transcript
from sklearn_pate.mechanisms._plurality import PluralityMechanism

__all__ = [
    "ConfidentGNMax",
    "GNMax",
    "GumbelMax",
    "InteractiveGNMax",
    "LNMax",
    "MeanScores",
    "Mechanism",
    "NoisyHistogram",
    "NoisySum",
    "Oracle",
    "PermuteAndFlip",
    "PluralityMechanism",
    "Transcript",
]
