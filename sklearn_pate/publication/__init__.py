"""Publication of a private model with its privacy statement."""

from sklearn_pate.publication._deployment import Deployment
from sklearn_pate.publication._published import PublishedClassifier, publish
from sklearn_pate.stored_types import types_to_trust

__all__ = ["Deployment", "PublishedClassifier", "publish", "types_to_trust"]
