"""Mechanisms that answer queries on vote counts with differential privacy."""

from sklearn_pate.mechanisms._confident import ConfidentGNMax
from sklearn_pate.mechanisms._exponential import GumbelMax, PermuteAndFlip
from sklearn_pate.mechanisms._gaussian import GNMax, NoisyHistogram
from sklearn_pate.mechanisms._interactive import InteractiveGNMax
from sklearn_pate.mechanisms._laplace import LNMax
from sklearn_pate.mechanisms._mean_scores import MeanScores
from sklearn_pate.mechanisms._noisy_sum import NoisySum
from sklearn_pate.mechanisms._oracle import Oracle, Transcript
from sklearn_pate.mechanisms._plurality import Mechanism

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
    "Transcript",
]
