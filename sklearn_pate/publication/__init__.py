"""What leaves the house: a student, its privacy statement, and nothing else."""

from sklearn_pate.publication._published import PublishedClassifier, publish

__all__ = ["PublishedClassifier", "publish"]
