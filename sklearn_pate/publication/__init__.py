"""Publication of a private model with its privacy statement."""

from sklearn_pate.publication._deployment import Deployment
from sklearn_pate.publication._published import PublishedClassifier, publish

__all__ = ["Deployment", "PublishedClassifier", "publish"]
