"""A PATEClassifier that records the arguments of its fits."""

from sklearn_pate import PATEClassifier, PublicData


class Witness(PATEClassifier):
    """Remembers the shapes that reached it."""

    def fit(self, X, y, *, X_public=None, groups=None):
        super().fit(X, y, X_public=X_public, groups=groups)
        rows = PublicData(X_public).X  # a Pipeline unwraps and wraps them
        self.shapes_ = {
            "X": X.shape,
            "y": y.shape,
            "X_public": rows.shape,
            "groups": None if groups is None else groups.shape,
        }
        return self
