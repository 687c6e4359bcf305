"""Private classifiers other than PATE, each with a privacy statement."""

from sklearn_pate.learners._dpsgd import DPSGDClassifier
from sklearn_pate.learners._linear import DPLinearSVC, DPLogisticRegression
from sklearn_pate.learners._naive_bayes import DPNaiveBayesClassifier
from sklearn_pate.learners._newton import DPNewtonClassifier
from sklearn_pate.learners._petdl import (
    Clusters,
    Hint,
    PETDLClassifier,
    RandomBatches,
)
from sklearn_pate.learners._private_knn import PrivateKNNClassifier

__all__ = [
    "Clusters",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPNaiveBayesClassifier",
    "DPNewtonClassifier",
    "DPSGDClassifier",
    "Hint",
    "PETDLClassifier",
    "PrivateKNNClassifier",
    "RandomBatches",
]
