"""The door: mechanisms that turn vote counts into private answers."""

from sklearn_pate.mechanisms.base import Mechanism
from sklearn_pate.mechanisms.confident import ConfidentGNMax
from sklearn_pate.mechanisms.exponential import GumbelMax, PermuteAndFlip
from sklearn_pate.mechanisms.gaussian import GNMax
from sklearn_pate.mechanisms.histogram import NoisyHistogram
from sklearn_pate.mechanisms.interactive import InteractiveGNMax
from sklearn_pate.mechanisms.laplace import LNMax
from sklearn_pate.mechanisms.oracle import Oracle, Transcript
from sklearn_pate.mechanisms.sums import NoisySum

__all__ = [
    "ConfidentGNMax",
    "GNMax",
    "GumbelMax",
    "InteractiveGNMax",
    "LNMax",
    "Mechanism",
    "NoisyHistogram",
    "NoisySum",
    "Oracle",
    "PermuteAndFlip",
    "Transcript",
]
