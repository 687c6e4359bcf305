"""Representation of images, fitted on public images without a network."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._image_shape import channels_first, read_input_shape
from sklearn_pate.accounting._value_checks import check_count

__all__ = ["ImageRepresentation"]

# More public images change neither filters nor components noticeably.
_MAX_ROWS = 10_000
# Side of a patch in pixels, and patches that filters are learned from.
_SIDE, _N_PATCHES = 6, 200_000
# Variance that is added: to that of a patch, relative to the mean, and to that of a
# direction of normalised patches.
_FLAT, _WHITEN = 0.01, 0.1
# Response of a filter below which it is 0, of either sign.
_THRESHOLD = 0.5
# Regions along each side over which responses are averaged.
_N_REGIONS = 2
# Principal components that the final ones are made of.
_N_PRINCIPAL = 1200
# Changed copies of an image: their number, smallest area, largest logarithms of the
# ratio of the sides and of the contrast of a channel.
_N_COPIES, _AREA, _RATIO, _CONTRAST = 4, 0.4, 0.15, 0.5
# Variance within images that is added, relative to its mean.
_RIDGE = 0.01
_IMAGES_AT_ONCE = 4


class ImageRepresentation(TransformerMixin, BaseEstimator):
    """Components of images that small changes leave alike, fitted on public images.

    Pass it as ``representation=`` to :class:`~sklearn_pate.PATEClassifier`. Filters of
    small patches are learned from public images without labels, and their responses are
    averaged over regions; the components are linear functions of the averages. It needs
    no network and no torch. It is fitted on public images only, so it has no privacy
    cost, and then transforms private, public and new images, each on its own.

    Parameters
    ----------
    image_shape : tuple of int, default=None
        (height, width), (channels, height, width) or (height, width, channels) of
        images in flat rows. None means that X has these dimensions. The last axis has
        the channels if it has 1, 3 or 4 values and the first has more than 4.

    n_filters : int, default=400
        Number of filters. More take longer, in proportion, and are more accurate on
        photographs.

    n_components : int, default=500
        Largest number of components. There are never more than public images.

    random_state : int, RandomState instance or None, default=None
        Seed of patches, filters and changes. Pass an int for the same components in
        every fit.

    Attributes
    ----------
    filters_ : ndarray of shape (n_values, n_filters)
        Filters of normalised patches.

    components_ : ndarray of shape (n_averages, n_components)
        Components, from the one that changes alter least.

    range_ : tuple of float
        Smallest and largest public value.

    n_features_in_ : int
        Number of values in a row, or of rows of pixels.

    Notes
    -----
    All statistics are those of public images. In order:

    1. Each patch of 6 x 6 pixels is centred, divided by its standard deviation and
       whitened. The filters are centres of clusters of patches, of length 1; a response
       x counts as max(x - 0.5, 0) and max(-x - 0.5, 0). Responses are averaged over
       each quarter of the image (Coates, Ng, Lee 2011, "An analysis of single-layer
       networks in unsupervised feature learning"; Coates, Ng 2011, "The importance of
       encoding versus training with sparse coding and vector quantization").
    2. Square roots of the averages, and their first 1200 principal components.
    3. Four copies of each public image are cropped, stretched and changed in contrast.
       The components maximise the variance between images relative to that between the
       copies of an image (Fisher's discriminant with each image as a class). The
       variance of a component is this ratio, so that components are in decreasing
       order.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_pate.students import ImageRepresentation
    >>> images = load_digits().images
    >>> representation = ImageRepresentation(n_filters=20, random_state=0)
    >>> representation.fit(images[:500]).transform(images[500:]).shape
    (1297, 160)
    """

    #: No missing value is left in the result.
    _fills_missing = True
    #: A row that is transformed leaves nothing behind.
    _keeps_no_row = True

    def __init__(
        self,
        image_shape: Any = None,
        n_filters: int = 400,
        n_components: int = 500,
        random_state: Any = None,
    ) -> None:
        self.image_shape = image_shape
        self.n_filters = n_filters
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn filters and components of public images.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width), \
                (n_rows, channels, height, width) or (n_rows, height, width, channels)
            Public images. A missing value counts as the smallest one.

        y : None
            Ignored.

        Returns
        -------
        self : ImageRepresentation
            Fitted.

        Raises
        ------
        ValueError
            If a parameter is invalid, or does not fit X.
        """
        for name in ("n_filters", "n_components"):
            check_count(name, getattr(self, name))
        X = check_features(self, X, reset=True)
        self.input_shape_ = read_input_shape(self.image_shape, X.shape)
        if len(self.input_shape_) == 1:
            raise ValueError(
                "image_shape=None, and X has rows without rows of pixels; pass "
                "image_shape=(height, width) or (channels, height, width)."
            )
        if len(X) < 2:
            raise ValueError(f"X has {len(X)} image; pass at least two public images.")
        self.range_ = float(np.nanmin(X)), float(np.nanmax(X))
        if self.range_[0] == self.range_[1]:
            raise ValueError("All pixels of X are equal; pass other public images.")
        random_state = check_random_state(self.random_state)
        if len(X) > _MAX_ROWS:
            X = X[np.sort(random_state.choice(len(X), _MAX_ROWS, replace=False))]
        images = self._images(X)
        self._learn_filters(images, random_state)
        self._learn_components(images, random_state)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Compute the components of images, each on its own.

        The last bits of an image's components depend on its position in X.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width), \
                (n_rows, channels, height, width) or (n_rows, height, width, channels)
            Private, public or new images. Values outside the public range count as the
            nearest one in it, and missing ones as the smallest.

        Returns
        -------
        components : ndarray of float32 of shape (n_rows, n_components)
            Finite numbers.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False, private=True)
        return self._projected(self._images(X), self.mean_, self.components_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            ``"image0"``, ``"image1"`` and so on.
        """
        check_is_fitted(self)
        names = [f"image{place}" for place in range(self.components_.shape[1])]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _images(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return images of shape (n_rows, channels, height, width), from 0 to 1."""
        low, high = self.range_
        clipped = np.where(np.isnan(X), low, np.clip(X, low, high))
        images = (clipped - low) / (high - low)
        layout = X.shape[1:] if X.ndim > 2 else self.image_shape
        return channels_first(images.astype(np.float32), layout, self.input_shape_)

    def _learn_filters(
        self, images: NDArray[np.float32], random_state: np.random.RandomState
    ) -> None:
        """Whiten patches, and find the centres of their clusters."""
        from sklearn.cluster import MiniBatchKMeans  # slow to import

        windows = _windows(images)
        n_of_image = -(-_N_PATCHES // len(images))
        of_image = np.repeat(np.arange(len(images)), n_of_image)
        down = random_state.randint(windows.shape[1], size=len(of_image))
        across = random_state.randint(windows.shape[2], size=len(of_image))
        patches = windows[of_image, down, across].reshape(len(of_image), -1)
        variances = patches.var(axis=1)
        self.flat_ = np.float32(_FLAT * variances.mean())
        patches = _normalised(patches[variances > self.flat_], self.flat_)
        mean = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches, rowvar=False))
        whiten = (vectors / np.sqrt(np.maximum(values, 0) + _WHITEN)) @ vectors.T
        whitened = normalize((patches - mean) @ whiten).astype(np.float32)
        clusters = MiniBatchKMeans(
            min(self.n_filters, len(whitened)),
            batch_size=4096,
            n_init=1,
            random_state=random_state,
        ).fit(whitened)
        centres = normalize(clusters.cluster_centers_)
        self.filters_ = (whiten @ centres.T).astype(np.float32)
        self.offsets_ = (mean @ self.filters_).astype(np.float32)

    def _learn_components(
        self, images: NDArray[np.float32], random_state: np.random.RandomState
    ) -> None:
        """Find functions that differ between images more than between their copies."""
        from sklearn.decomposition import PCA  # slow to import

        averages = np.concatenate([*self._averages(images)])
        n_principal = min(_N_PRINCIPAL, len(images) - 1, averages.shape[1])
        principal = PCA(n_principal, random_state=random_state).fit(averages)
        self.mean_ = principal.mean_.astype(np.float32)
        directions = principal.components_.T.astype(np.float32)
        copies = np.array(
            [
                self._projected(_changed(images, random_state), self.mean_, directions)
                for _ in range(_N_COPIES)
            ],
            dtype=np.float64,
        )
        centres = copies.mean(axis=0)
        apart = (copies - centres).reshape(-1, n_principal)
        within = apart.T @ apart / ((_N_COPIES - 1) * len(centres))
        between = np.atleast_2d(np.cov(centres, rowvar=False)) - within / _N_COPIES
        ridge = _RIDGE * np.trace(within) / n_principal
        n_components = min(self.n_components, n_principal)
        ratios, functions = eigh(
            between,
            within + max(ridge, np.finfo(float).tiny) * np.eye(n_principal),
            subset_by_index=[n_principal - n_components, n_principal - 1],
        )
        functions = functions[:, ::-1]
        deviations = np.std((averages - self.mean_) @ directions @ functions, axis=0)
        scales = np.sqrt(np.maximum(ratios[::-1], 0)) / np.where(
            deviations > 0, deviations, 1
        )
        self.components_ = directions @ (functions * scales).astype(np.float32)

    def _projected(
        self,
        images: NDArray[np.float32],
        mean: NDArray[np.float32],
        directions: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Compute linear functions of the averages of images."""
        parts = [(one - mean) @ directions for one in self._averages(images)]
        return np.concatenate(parts)

    def _averages(self, images: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
        """Yield square roots of averaged responses, of some images at a time."""
        height, width = (size - _side(images) + 1 for size in images.shape[-2:])
        average = np.kron(_regions(height), _regions(width))
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            windows = _windows(images[start : start + _IMAGES_AT_ONCE])
            patches = windows.reshape(-1, windows[0, 0, 0].size)
            responses = _normalised(patches, self.flat_) @ self.filters_ - self.offsets_
            responses = responses.reshape(len(windows), height * width, -1)
            positive = average @ np.maximum(responses - _THRESHOLD, 0)
            negative = average @ np.maximum(-responses - _THRESHOLD, 0)
            both = np.concatenate([positive, negative], axis=2)
            yield np.sqrt(both).reshape(len(windows), -1)


def _side(images: NDArray[np.float32]) -> int:
    """Compute the side of a patch, which fits into the image."""
    return min(_SIDE, *images.shape[-2:])


def _windows(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """View all patches, shape (n_images, height, width, channels, side, side)."""
    side = _side(images)
    windows = sliding_window_view(images, (side, side), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5)


def _normalised(patches: NDArray[np.float32], flat: np.float32) -> NDArray[np.float32]:
    """Centre each patch, and divide it by its standard deviation."""
    patches = patches - patches.mean(axis=1, keepdims=True)
    variances = np.einsum("ij,ij->i", patches, patches) / patches.shape[1]
    return patches / np.sqrt(variances + flat)[:, np.newaxis]


def _regions(size: int) -> NDArray[np.float32]:
    """Return the weights of positions in the average of each region."""
    parts = np.array_split(np.arange(size), min(_N_REGIONS, size))
    weights = np.zeros((len(parts), size), dtype=np.float32)
    for region, places in enumerate(parts):
        weights[region, places] = 1 / len(places)
    return weights


def _changed(
    images: NDArray[np.float32], random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Crop, stretch and change the contrast of each image."""
    n_images, n_channels, height, width = images.shape
    area = random_state.uniform(_AREA, 1, size=n_images)
    ratio = np.exp(random_state.uniform(-_RATIO, _RATIO, size=n_images))
    down = _interpolation(height, np.sqrt(area) * ratio, random_state)
    across = _interpolation(width, np.sqrt(area) / ratio, random_state)
    cropped = np.einsum("nij,ncjk,nlk->ncil", down, images, across, optimize=True)
    contrast = random_state.uniform(
        -_CONTRAST, _CONTRAST, size=(n_images, n_channels, 1, 1)
    )
    mean = cropped.mean(axis=(1, 2, 3), keepdims=True)
    return (mean + (cropped - mean) * np.exp(contrast)).astype(np.float32)


def _interpolation(
    size: int, shares: NDArray[np.float64], random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Return weights that stretch a random part of each line over the whole line."""
    shares = np.minimum(shares, 1)[:, np.newaxis]
    starts = random_state.uniform(size=shares.shape) * (1 - shares)
    places = (starts + shares * np.linspace(0, 1, size)) * (size - 1)
    distances = np.abs(places[:, :, np.newaxis] - np.arange(size))
    return np.maximum(1 - distances, 0).astype(np.float32)
