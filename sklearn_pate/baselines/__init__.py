"""Other private classifiers, with the same statement."""

from sklearn_pate.baselines._naive_bayes import DPNaiveBayesClassifier
from sklearn_pate.baselines._newton import DPNewtonClassifier
from sklearn_pate.baselines._petdl import PETDLClassifier
from sklearn_pate.baselines._private_knn import PrivateKNNClassifier
from sklearn_pate.baselines.dpsgd._dpsgd_classifier import DPSGDClassifier
from sklearn_pate.baselines.linear._dp_linear import DPLinearSVC, DPLogisticRegression

__all__ = [
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPNaiveBayesClassifier",
    "DPNewtonClassifier",
    "DPSGDClassifier",
    "PETDLClassifier",
    "PrivateKNNClassifier",
]
