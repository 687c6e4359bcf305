"""Mechanisms that answer queries on vote counts with differential privacy."""

from sklearn_pate.mechanisms._noisy_max import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.mechanisms._noisy_sum import MeanScores, NoisySum
from sklearn_pate.mechanisms._oracle import Oracle, Transcript
from sklearn_pate.mechanisms._plurality import Mechanism, PluralityMechanism

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
