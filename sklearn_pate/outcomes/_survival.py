"""Survival analysis by a private classifier of intervals."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._inputs._odd_values import read_numbers
from sklearn_pate.accounting._statement import BINS_DECLARED
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.outcomes._outcome import (
    Outcome,
    OutcomeOfClasses,
    PrivateOutcome,
    PublishedOutcome,
    read_edges,
)

_EXAMPLE = "[365, 730, 1825] for times in days"
# Persons that are compared with all others at once.
_AT_ONCE = 512
# Share of times beyond the last interval that is told of.
_MOSTLY_LATER = 0.98


@dataclass(frozen=True)
class SurvivalOutcome(Outcome):
    """Times until an event or until censoring, in intervals.

    Of J intervals, class j is an event in interval j, class J + j is censoring in it,
    and class 2 J is a later time.
    """

    kind: ClassVar[str] = "time"

    @property
    def n_classes(self) -> int:
        """Number of pairs of interval and event or censoring, and one for later."""
        return 2 * len(self.edges) - 1

    def codes(self, y: Any) -> NDArray[np.intp]:
        """Return the class of each person, -1 for unknown events and times."""
        events, times = read_survival(y)
        n_intervals = len(self.edges) - 1
        # An event at an end is in the interval before it. Somebody censored there was
        # followed through that interval.
        of_event = np.digitize(times, self.edges[1:], right=True)
        of_censored = np.digitize(times, self.edges[1:])
        of_event[of_event == n_intervals] = 2 * n_intervals
        codes = np.where(events == 1, of_event, n_intervals + of_censored)
        return np.where((events < 0) | np.isnan(times), -1, codes)

    def problems(self, y: Any) -> list[str]:
        """Describe unknown events, and times that no interval holds. Sensitive."""
        events, times = read_survival(y, refuse_negative=False)
        problems = [
            f"{counted(int(left_out.sum()), 'row')} left out: {what}."
            for what, left_out in {
                "the event is neither 0 nor 1": events < 0,
                "the time is missing, or no number": np.isnan(times),
                "the time is negative": times < 0,
            }.items()
            if left_out.any()
        ]
        codes = self.codes(y)
        n_intervals = len(self.edges) - 1
        problems += [
            f"No event is between {low:g} and {high:g}."
            for place, (low, high) in enumerate(
                zip(self.edges[:-1], self.edges[1:], strict=True)
            )
            if not np.any(codes == place)
        ]
        n_at_end = int(np.sum((times == self.edges[-1]) & (events == 0)))
        if codes.size and not np.any(codes == 2 * n_intervals):
            problems.append(
                "Nobody is followed beyond the last interval: compare the units of "
                "times and intervals, or end the intervals earlier."
            )
        elif n_at_end == 0 and np.mean(codes == 2 * n_intervals) > _MOSTLY_LATER:
            problems.append(
                "Nearly all times are beyond the last interval: compare the units of "
                "times and intervals."
            )
        return problems


class PredictionsOfIntervals(OutcomeOfClasses[Any]):
    """Survival functions from probabilities of intervals."""

    _kind = "time"

    @property
    def event_times_(self) -> NDArray[np.float64]:
        """Increasing ends of the intervals."""
        return self._edges[1:]

    def predict_survival_function(
        self, X: Any, times: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict the probability that there was no event until each time.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        times : array-like of shape (n_times,), default=None
            Times from 0 to the end of the last interval. With None, the ends of the
            intervals, ``event_times_``.

        Returns
        -------
        survival : ndarray of shape (n_rows, n_times)
            Probabilities. Within an interval, the hazard is constant.

        Raises
        ------
        ValueError
            If a time is negative or beyond the last interval.
        """
        edges = self._edges
        survival = survival_of(self._probabilities(X))
        if times is None:
            return survival[:, 1:]
        wanted = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if wanted.ndim != 1 or not np.all((wanted >= 0) & (wanted <= edges[-1])):
            raise ValueError(
                f"times={times!r} must be between 0 and {edges[-1]:g}, the end of the "
                "last interval: nothing later is predicted."
            )
        logs = np.log(np.maximum(survival, np.finfo(float).tiny))
        return np.exp([np.interp(wanted, edges, row) for row in logs])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the risk of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        risk : ndarray of shape (n_rows,)
            Mean share of the time to the end of the last interval that is lost by an
            event. Between 0 and 1; larger for earlier events.
        """
        edges, survival = self._edges, survival_of(self._probabilities(X))
        return 1 - np.trapezoid(survival, edges, axis=1) / edges[-1]

    def score(self, X: Any, y: Any) -> float:
        """Compute the concordance index of the risk.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        y : structured array of shape (n_rows,)
            Events and times, as in `fit`.

        Returns
        -------
        concordance : float
            Share of comparable pairs in which the person with the earlier event has the
            higher risk (Harrell, Califf, Pryor, Lee, Rosati 1982, "Evaluating the yield
            of medical tests"). Equal risks count half. NaN without such a pair.
        """
        risk = self.predict(X)
        events, times = read_survival(y)
        check_consistent_length(risk, times)
        known = (events >= 0) & ~np.isnan(times)
        return concordance(events[known] == 1, times[known], risk[known])

    def _read(self, y: Any) -> tuple[NDArray[np.intp], Any]:
        """Return the class of each row, and events and times."""
        return self._codes_at(y, self._edges), y

    def _codes_at(self, y: Any, edges: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the class of each row for intervals with these edges."""
        return SurvivalOutcome(edges, BINS_DECLARED).codes(y)

    def _measures(self, probabilities: NDArray[np.float64], y: Any) -> Any:
        """Compute the predicted incidence at each end of an interval."""
        return 1 - survival_of(probabilities)[:, 1:]


class PublishedSurvival(PredictionsOfIntervals, PublishedOutcome):
    """Published survival model with its privacy statement.

    Created by :meth:`DiscreteSurvival.publish`, or read by :meth:`load`. The model
    predicts like the private estimator, and contains no parameter of it. `fit` raises
    an error.

    Attributes
    ----------
    classifier_ : PublishedClassifier
        Classifier of intervals with and without an event.

    event_times_ : ndarray of shape (n_intervals,)
        Ends of the intervals.

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
    DiscreteSurvival : The private estimator.

    Examples
    --------
    >>> from sklearn_pate.outcomes import PublishedSurvival
    >>> model = PublishedSurvival.load("relapse.skops")  # doctest: +SKIP
    >>> model.predict_survival_function(rows, times=[365])  # doctest: +SKIP
    """

    __module__ = "sklearn_pate.outcomes"


class DiscreteSurvival(PredictionsOfIntervals, PrivateOutcome):
    """Private survival analysis, by a private classifier of declared intervals.

    Each person has one row, an event or a censoring, and its time. A private classifier
    learns in which interval the time is, and whether there was an event. The survival
    function is computed from its probabilities, at no privacy cost.

    Parameters
    ----------
    classifier : private classifier
        Classifier of the intervals, such as :class:`~sklearn_pate.DPNewtonClassifier`
        or :class:`~sklearn_pate.PATEClassifier`. All privacy parameters are those of
        the classifier. Its `classes` stay None.

    intervals : array-like of shape (n_intervals,)
        Ends of the intervals, which increase, chosen **without a look at private
        rows**. The first interval begins at time 0. Whoever has a later time counts as
        without an event until the last end.

    Attributes
    ----------
    classifier_ : private classifier
        Fitted classifier of intervals with and without an event.

    event_times_ : ndarray of shape (n_intervals,)
        Ends of the intervals.

    privacy_spent_ : PrivacySpent
        The privacy statement. May be published.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X was a dataframe with string column names.

    See Also
    --------
    BinnedRegressor : Numbers without censoring.

    Notes
    -----
    The class of a row depends on this row and on the intervals alone. The fit is thus a
    fit of the classifier, with its guarantee. Rows of one person and one period each
    would need groups as the unit of privacy, and lose most of the persons' signal:
    see :doc:`/guide/outcomes`.

    The hazard of an interval is that of life tables, for given features: the
    probability of an event, divided by that of being followed until the interval begins
    less half of that of censoring in the interval (Cutler, Ederer 1958, "Maximum
    utilization of the life table method in analyzing survival"). Censoring must not
    depend on the time of the event, given the features. Short intervals make it
    harmless where in an interval somebody is censored.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import DPNewtonClassifier, PublicData
    >>> from sklearn_pate.outcomes import DiscreteSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 3))
    >>> event = rng.exponential(10 * np.exp(-X[:, 0]))
    >>> censoring = rng.uniform(0, 20, size=6000)
    >>> y = np.empty(6000, dtype=[("event", bool), ("time", float)])
    >>> y["event"], y["time"] = event <= censoring, np.minimum(event, censoring)
    >>> model = DiscreteSurvival(DPNewtonClassifier(epsilon=1.0), intervals=[2, 5, 10])
    >>> model = model.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:]))
    >>> bool(model.score(X, y) > 0.65)
    True
    >>> model.predict_survival_function(X[:2], times=[1, 10]).shape
    (2, 2)
    """

    _published = PublishedSurvival

    def __init__(self, classifier: Any, *, intervals: ArrayLike) -> None:
        self.classifier = classifier
        self.intervals = intervals

    def _read_outcome(self, y: Any, n_rows: int) -> SurvivalOutcome:
        read_survival(y)
        ends = read_edges("intervals", self.intervals, 1, _EXAMPLE)
        if ends[0] < 0 or ends[-1] <= 0:
            raise ValueError(
                f"intervals={self.intervals!r} must be positive ends, such as "
                f"{_EXAMPLE}; the first interval begins at time 0."
            )
        edges = ends if ends[0] == 0 else np.insert(ends, 0, 0.0)
        return SurvivalOutcome(edges, BINS_DECLARED)


def read_survival(
    y: Any, *, refuse_negative: bool = True
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Read events, -1 for unknown ones, and times, NaN for what is no time.

    Raises ValueError for a declared type of y that has no events and times.
    """
    dtype = getattr(y, "dtype", None)
    fields = getattr(dtype, "fields", None) or {}
    kinds = [one[0].kind for one in fields.values()]
    # Of two whole numbers, the first might be the time.
    is_read = "".join(kinds) in ("bi", "bu", "bf", "if", "uf")
    if np.ndim(y) != 1 or not is_read:
        raise ValueError(
            "y must be a structured array of an event, a boolean or a code 0 or 1, and "
            "a time, a number; write y = numpy.empty(n_rows, dtype=[('event', bool), "
            "('time', float)]) and fill in both fields."
        )
    event, time = (np.asarray(y[name]) for name in fields)
    events = np.where((event == 0) | (event == 1), event.astype(np.intp), -1)
    times = read_numbers(time[:, np.newaxis])[:, 0]
    is_time = np.isfinite(times) & ((times >= 0) | (not refuse_negative))
    return events, np.where(is_time, times, np.nan)


def survival_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute survival at the edges of intervals from probabilities of the classes."""
    n_intervals = probabilities.shape[1] // 2
    events, censored = np.split(probabilities[:, :-1], 2, axis=1)
    both = events + censored
    followed = 1 - np.cumsum(both, axis=1) + both
    exposed = np.maximum(followed - censored / 2, np.finfo(float).tiny)
    hazards = np.clip(events / exposed, 0, 1)
    survival = np.cumprod(1 - hazards, axis=1)
    return np.hstack([np.ones((len(survival), 1)), survival[:, :n_intervals]])


def concordance(
    events: NDArray[np.bool_], times: NDArray[np.float64], risk: NDArray[np.float64]
) -> float:
    """Compute Harrell's concordance index; NaN without a comparable pair."""
    right = pairs = 0.0
    for part in np.array_split(np.flatnonzero(events), 1 + len(events) // _AT_ONCE):
        own = times[part, np.newaxis]
        # Somebody censored at the time of an event was without it.
        later = (times > own) | ((times == own) & ~events)
        difference = risk[part, np.newaxis] - risk
        right += (
            np.sum(later & (difference > 0)) + np.sum(later & (difference == 0)) / 2
        )
        pairs += np.sum(later)
    return float(right / pairs) if pairs else float("nan")
