"""Other private learners, to compare with."""

from sklearn_pate.baselines.petdl import PETDLClassifier

__all__ = ["PETDLClassifier"]
