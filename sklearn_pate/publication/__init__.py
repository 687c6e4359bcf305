"""Publication of a private model: the model and its privacy statement alone."""

from sklearn_pate.publication._deployment import Deployment
from sklearn_pate.publication._published import PublishedClassifier, publish

__all__ = ["Deployment", "PublishedClassifier", "publish"]
