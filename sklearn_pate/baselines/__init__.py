"""Other private learners, to compare with."""

from sklearn_pate.baselines.dpsgd import DPSGDClassifier
from sklearn_pate.baselines.erm import DPLinearSVC, DPLogisticRegression
from sklearn_pate.baselines.neighbours import PrivateKNNClassifier
from sklearn_pate.baselines.petdl import PETDLClassifier

__all__ = [
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPSGDClassifier",
    "PETDLClassifier",
    "PrivateKNNClassifier",
]
