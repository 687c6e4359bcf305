"""Regression of a bounded outcome by a private classifier of its bins."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.validation import column_or_1d

from sklearn_pate._inputs._odd_values import kind_of, of_each, to_number
from sklearn_pate.accounting._calibrate import largest_gdp_mu
from sklearn_pate.accounting._statement import BINS_DECLARED, RANGE_READ
from sklearn_pate.accounting._value_checks import check_number, counted
from sklearn_pate.outcomes._outcome import (
    Outcome,
    OutcomeOfClasses,
    PrivateOutcome,
    PublishedOutcome,
    read_edges,
)

# Fewest and most bins of a range, the exponent of n mu between them, and the number
# where n or epsilon is not known. Measured on days in hospital and on credit limits.
_FEWEST, _MOST, _EXPONENT, _USUAL = 3, 7, 0.17, 5
# Share of outcomes outside of the edges that is told of.
_OUTSIDE = 0.01
_EXAMPLE = "[0, 2, 5, 14], or (0, 14) for a range"


@dataclass(frozen=True)
class BinnedOutcome(Outcome):
    """Numbers in bins, the outer ones of which are open."""

    kind: ClassVar[str] = "number"

    @property
    def n_classes(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def codes(self, y: Any) -> NDArray[np.intp]:
        """Return the bin of each row, -1 for an outcome that is no number."""
        numbers = read_outcomes(y)
        bins = np.digitize(numbers, self.edges[1:-1])
        return np.where(np.isnan(numbers), -1, bins)

    def problems(self, y: Any) -> list[str]:
        """Describe missing numbers, and numbers outside or at edges. Sensitive."""
        numbers = read_outcomes(y)
        missing = np.isnan(numbers)
        known = numbers[~missing]
        problems = []
        if missing.any():
            problems.append(
                f"{counted(int(missing.sum()), 'row')} left out: the outcome is "
                "missing, or no number."
            )
        low, high = self.edges[0], self.edges[-1]
        for place, outside in (
            (f"below {low:g}, the first edge", known < low),
            (f"above {high:g}, the last edge", known > high),
        ):
            if outside.sum() > _OUTSIDE * len(known):
                problems.append(
                    f"{counted(int(outside.sum()), 'outcome')} of {len(known)} are "
                    f"{place}, and count in the bin beside it: compare the units, or "
                    "move the edge."
                )
        inner, whole = self.edges[1:-1], known == np.round(known)
        if len(known) and whole.all() and np.any(inner == np.round(inner)):
            problems.append(
                "All outcomes are whole numbers, and an edge is one, too. A bin takes "
                "its lower edge, so that its middle is too large: put edges at halves, "
                "such as 0.5, 2.5, 7.5."
            )
        counts = np.bincount(self.codes(known), minlength=self.n_classes)
        problems += [
            f"No outcome is between {low:g} and {high:g}."
            for low, high, count in zip(
                self.edges[:-1], self.edges[1:], counts, strict=True
            )
            if count == 0
        ]
        return problems


class PredictionsOfBins(RegressorMixin, OutcomeOfClasses[Any]):
    """Predictions of numbers from probabilities of bins."""

    _kind = "number"

    @property
    def edges_(self) -> NDArray[np.float64]:
        """Increasing edges of the bins."""
        return self._edges

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the mean outcome of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
            Mean of the middles of the bins, weighted by their probabilities.
        """
        return self._mean(self._probabilities(X))

    def predict_quantiles(
        self, X: Any, quantiles: ArrayLike = (0.05, 0.5, 0.95)
    ) -> NDArray[np.float64]:
        """Predict quantiles of the outcome of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        quantiles : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Probabilities of a smaller outcome, between 0 and 1.

        Returns
        -------
        values : ndarray of shape (n_rows, n_quantiles)
            Quantiles of a density that is constant within each bin.

        Raises
        ------
        ValueError
            If a quantile is not between 0 and 1.
        """
        wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if wanted.ndim != 1 or not np.all((wanted >= 0) & (wanted <= 1)):
            raise ValueError(
                f"quantiles={quantiles!r} must be probabilities between 0 and 1, such "
                "as [0.05, 0.5, 0.95]."
            )
        edges = self._edges
        below = _below(self._probabilities(X))
        found = np.array([np.interp(wanted, row, edges) for row in below])
        found = found.reshape(len(below), len(wanted))
        found[:, wanted == 0] = edges[0]  # not the last edge below which nothing is
        return found

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9
    ) -> NDArray[np.float64]:
        """Predict an interval of the outcome of each row.

        The interval leaves equal probabilities below and above. As models err, fewer
        outcomes may be inside: ``OutcomeMetrics.confidence_level(coverage=0.9)`` is a
        level whose intervals hold 90 % of the outcomes of measured rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        confidence_level : float, default=0.9
            Probability, by the model, of an outcome in the interval.

        Returns
        -------
        ends : ndarray of shape (n_rows, 2)
            Lower and upper end of each interval.

        Raises
        ------
        ValueError
            If `confidence_level` is not between 0 and 1.
        """
        check_number("confidence_level", confidence_level, 0, 1)
        return self.predict_quantiles(
            X, [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
        )

    def _read(self, y: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the bin and the number of each row."""
        return BinnedOutcome(self._edges, BINS_DECLARED).codes(y), read_outcomes(y)

    def _mean(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the mean of the middles of the bins."""
        edges = self._edges
        return np.sum(probabilities * (edges[:-1] + edges[1:]) / 2, axis=1)

    def _measures(
        self, probabilities: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute prediction and outcome of each row, and its least level.

        Prediction and outcome are shares of the range. From the least level on, the
        interval of a row holds its outcome.
        """
        edges = self._edges
        y = y.clip(edges[0], edges[-1])
        below = np.array(
            [
                np.interp(one, edges, row)
                for one, row in zip(y, _below(probabilities), strict=True)
            ]
        )
        mean = self._mean(probabilities)
        shares = (np.stack([mean, y], axis=1) - edges[0]) / (edges[-1] - edges[0])
        return np.column_stack([shares, np.abs(2 * below - 1)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # On a few dozen rows the noise exceeds the signal.
        tags.regressor_tags.poor_score = True
        return tags


class PublishedRegressor(PredictionsOfBins, PublishedOutcome):
    """Published model of a number with its privacy statement.

    Created by :meth:`BinnedRegressor.publish`, or read by :meth:`load`. The model
    predicts like the private regressor, and contains no parameter of it. `fit` raises
    an error.

    Attributes
    ----------
    classifier_ : PublishedClassifier
        Classifier of the bins. Its `predict_proba` returns their probabilities.

    edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins.

    privacy_spent_ : PrivacySpent
        Privacy statement of all that is published: the model, and its metrics.

    model_privacy_spent_ : PrivacySpent
        Part of this statement that is about the model alone.

    metrics_ : OutcomeMetrics
        Metrics published with the model, absent without any.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X was a dataframe with string column names.

    See Also
    --------
    BinnedRegressor : The private regressor.

    Examples
    --------
    >>> from sklearn_pate.outcomes import PublishedRegressor
    >>> model = PublishedRegressor.load("days.skops")  # doctest: +SKIP
    >>> model.predict_interval(rows, confidence_level=0.9)  # doctest: +SKIP
    """

    __module__ = "sklearn_pate.outcomes"


class BinnedRegressor(PredictionsOfBins, PrivateOutcome):
    """Private regression of a bounded number, by a private classifier of its bins.

    The edges of the bins are declared. A private classifier learns the bin of each row,
    and means, quantiles and intervals are computed from the probabilities of the bins,
    at no privacy cost. The same model serves ordinal outcomes, such as triage levels
    from 1 to 5 with ``bins=[0.5, 1.5, 2.5, 3.5, 4.5, 5.5]``.

    Parameters
    ----------
    classifier : private classifier
        Classifier of the bins, such as :class:`~sklearn_pate.DPNewtonClassifier` or
        :class:`~sklearn_pate.PATEClassifier`. All privacy parameters are those of the
        classifier. Its `classes` stay None.

    bins : array-like of shape (n_edges,), default=None
        Edges of the bins, which increase, chosen **without a look at private rows**. A
        number below the first edge counts in the first bin, and one above the last edge
        in the last bin. Two numbers are a range, which becomes 5 bins of equal width,
        or 3 to 7 by the number of rows and epsilon if PATE, DPNewton or PETDL protects
        rows. With None, the range is that of y, and the privacy statement assumes that
        it is public.

    Attributes
    ----------
    classifier_ : private classifier
        Fitted classifier of the bins. Its ``predict_proba`` returns their
        probabilities.

    edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins.

    privacy_spent_ : PrivacySpent
        The privacy statement. May be published.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X was a dataframe with string column names.

    See Also
    --------
    DiscreteSurvival : Times until an event, which may be censored.

    Notes
    -----
    The bin of a row depends on this row and on the edges alone. The fit is thus a fit
    of the classifier, with its guarantee, and predictions are post-processing (Dwork,
    McSherry, Nissim, Smith 2006, "Calibrating noise to sensitivity in private data
    analysis"). Regression by classes of bins is from Weiss, Indurkhya (1995),
    "Rule-based machine learning methods for functional prediction".

    A bin takes its lower edge, and not its upper edge. For whole numbers, put edges at
    halves: the middle of the bin from 0.5 to 2.5 is the mean of 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import DPNewtonClassifier, PublicData
    >>> from sklearn_pate.outcomes import BinnedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 3))
    >>> y = 5 + 2 * X[:, 0] + rng.normal(size=6000)
    >>> model = BinnedRegressor(DPNewtonClassifier(epsilon=1.0), bins=(0, 10))
    >>> model = model.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:]))
    >>> bool(model.score(X, y) > 0.5)
    True
    >>> model.predict_interval(X[:2]).shape
    (2, 2)
    """

    _published = PublishedRegressor

    def __init__(self, classifier: Any, *, bins: ArrayLike | None = None) -> None:
        self.classifier = classifier
        self.bins = bins

    def _read_outcome(self, y: Any, n_rows: int) -> BinnedOutcome:
        if self.bins is None:
            numbers = read_outcomes(y)
            if not len(numbers) or np.isnan(numbers).all():
                raise ValueError(
                    "y has no number to read the range from; declare the range as "
                    "bins=(low, high), or pass numbers."
                )
            assert_all_finite(numbers, input_name="y")
            ends = np.array([numbers.min(), numbers.max()])
            if ends[0] == ends[1]:
                ends += [-0.5, 0.5]
        else:
            ends = read_edges("bins", self.bins, 2, _EXAMPLE)
        assumption = RANGE_READ if self.bins is None else BINS_DECLARED
        if len(ends) == 2:
            ends = np.linspace(ends[0], ends[1], self._n_bins(n_rows) + 1)
        return BinnedOutcome(ends, assumption)

    def _n_bins(self, n_rows: int) -> int:
        """Return the number of bins of a range, by numbers that are public."""
        epsilon = self.classifier.get_params(deep=False).get("epsilon")
        # The number of rows is public where rows are replaced, and not elsewhere.
        is_public = not getattr(self.classifier, "_add_remove", True)
        if epsilon is None or self._counts_rows or not is_public:
            return _USUAL
        signal = n_rows * largest_gdp_mu(epsilon, self.classifier.delta)
        return int(np.clip(round(signal**_EXPONENT), _FEWEST, _MOST))


def read_outcomes(y: Any) -> NDArray[np.float64]:
    """Read numbers, NaN for any value that is none or not finite.

    Raises ValueError for a declared type of y that has no numbers.
    """
    if isinstance(y, (list, tuple)):
        values = np.fromiter(map(_alone, y), dtype=object)
    else:
        values = column_or_1d(np.asarray(y), warn=True)
    if values.dtype.kind not in "iufO":
        raise ValueError(
            f"y is declared to be {values.dtype}, but the outcome is a number; pass "
            "numbers."
        )
    if values.dtype.kind == "O":
        values = np.array(of_each(_to_number, values.tolist()), dtype=np.float64)
    numbers = values.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _alone(value: Any) -> Any:
    """Return the only item of a list, as y may have one column."""
    is_row = type(value) in (list, tuple) and len(value) == 1
    return value[0] if is_row else value


def _to_number(value: Any) -> float:
    """Read a number, or text of one; NaN for all else, such as durations."""
    is_number = kind_of(type(value)) in ("number", "text")
    if not is_number or isinstance(value, (bool, np.bool_)):
        return np.nan
    return to_number(value)


def _below(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute probabilities of an outcome below each edge, (n_rows, n_edges)."""
    sums = np.cumsum(probabilities, axis=1)
    sums /= np.maximum(sums[:, -1:], np.finfo(float).tiny)
    return np.hstack([np.zeros((len(sums), 1)), sums])
