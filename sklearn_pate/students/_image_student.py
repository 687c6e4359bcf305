"""Student of images that learns from labelled and unlabelled ones."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._estimators._kinds import check_transformer
from sklearn_pate._estimators._predictions import WrappingClassifier
from sklearn_pate._inputs._labels import read_targets
from sklearn_pate.students._representations import ImageRepresentation

# Components that a classifier learns from few labels, or from few private rows; and the
# shrinkage of covariances. Measured on MNIST, SVHN and CIFAR-10.
FEW_COMPONENTS, _SHRINKAGE = 20, 0.5


class ImageStudent(WrappingClassifier):
    """Linear discriminant analysis of images, by all public images.

    The default student of images of a :class:`~sklearn_pate.PATEClassifier`. A
    discriminant on the first 20 components learns from the labelled images, and labels
    all others. A discriminant on all components learns from all images. Training uses
    public images and released labels only, so that it has no privacy cost.

    Parameters
    ----------
    representation : transformer, default=None
        Transformer of images to components, with the most informative ones first. A
        clone is fitted on all images; None is ``ImageRepresentation()``.

    random_state : int, RandomState instance or None, default=None
        Seed of every `random_state` in `representation`. With None, these parameters
        are not changed.

    Attributes
    ----------
    estimator_ : Pipeline
        The representation and the discriminant, which predicts class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    n_features_in_ : int
        Number of values in a flat row, or length of the second axis of images: rows of
        pixels, or channels if these come first.

    Notes
    -----
    Labels of a classifier as targets of the next one are self-training (Yarowsky 1995,
    "Unsupervised word sense disambiguation rivaling supervised methods").

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_pate.students import ImageRepresentation, ImageStudent
    >>> X, digits = load_digits(return_X_y=True)
    >>> X, y = X.reshape(-1, 8, 8), np.where(np.arange(1797) < 100, digits, -1)
    >>> representation = ImageRepresentation(n_filters=20, random_state=0)
    >>> student = ImageStudent(representation).fit(X[:1000], y[:1000])
    >>> bool(student.score(X[1000:], digits[1000:]) > 0.85)
    True
    """

    __module__ = "sklearn_pate.students"  # its name in files

    #: Rows with y = -1 are unlabelled, as in scikit-learn.
    accepts_unlabeled = True

    def __init__(self, representation: Any = None, *, random_state: Any = None) -> None:
        self.representation = representation
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Label all images, and learn from all.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width), \
                (n_rows, channels, height, width) or (n_rows, height, width, channels)
            Labelled and unlabelled images.

        y : array-like of shape (n_rows,)
            Labels; -1 for an unlabelled image.

        Returns
        -------
        self : ImageStudent
            Fitted.

        Raises
        ------
        ValueError
            If `representation` is no transformer, or y has one class only.
        """
        check_transformer(self.representation)
        X = self._check_rows(X, reset=True)
        check_consistent_length(X, y)
        classes, targets = read_targets(y)
        labelled = np.flatnonzero(targets.any(axis=1))
        codes = targets.argmax(axis=1)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        representation = self._seeded(self._chosen(), seed).fit(X, None)
        if isinstance(representation, FrozenEstimator):
            representation = representation.estimator
        features = np.asarray(representation.transform(X))
        if len(labelled) < len(codes):
            few = features[:, :FEW_COMPONENTS]
            first = _discriminant(few[labelled], codes[labelled])
            rest = np.setdiff1d(np.arange(len(codes)), labelled)
            codes[rest] = first.predict(few[rest])
        discriminant = _discriminant(features, codes)
        self.classes_ = classes
        self.estimator_ = Pipeline(
            [("representation", representation), ("discriminant", discriminant)]
        )
        return self

    def _chosen(self) -> Any:
        if self.representation is None:
            return ImageRepresentation()
        return self.representation

    def _unfitted_inner(self) -> Pipeline:
        return make_pipeline(self._chosen(), LinearDiscriminantAnalysis())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = get_tags(
            self._chosen()
        ).input_tags.three_d_array
        return tags


def _discriminant(
    features: NDArray[Any], codes: NDArray[np.intp]
) -> LinearDiscriminantAnalysis:
    # Twice each row, as as many rows as classes are refused.
    features, codes = np.tile(features, (2, 1)), np.tile(codes, 2)
    discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=_SHRINKAGE)
    return discriminant.fit(features, codes)
