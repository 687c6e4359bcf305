"""Displays of epsilon, delta, answers and scores."""

import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, check_scoring

from sklearn_pate._estimators._kinds import last_step
from sklearn_pate.accounting._cost import check_neighbours
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import PrivacySpent, statement_of
from sklearn_pate.accounting._value_checks import check_count, counted, is_positive
from sklearn_pate.mechanisms import NoisySum
from sklearn_pate.mechanisms._noisy_sum import TwoPartRelease
from sklearn_pate.mechanisms._noisy_training import SampledMechanism
from sklearn_pate.mechanisms._plurality import Mechanism, PluralityMechanism
from sklearn_pate.metrics._results import (
    COLORS,
    line_style,
    make_axes,
    point_style,
    require_matplotlib,
)

#: Warning across a plot that must not be published.
SENSITIVE = "SENSITIVE: depends on private data, do not publish"

# Width of a letter of the stamp, over its height.
_LETTER = 0.6
# Costs are almost a straight line against the root of the number of queries.
_N_COUNTS = 40
# Fits for one target epsilon state slightly different values: those within one percent
# share a point.
_ONE_TARGET = 0.01
_N_POINTS = 200
# The axis is this factor wider than the stated deltas.
_AROUND = 1e4
_LARGEST_DELTA = 0.1
# Range if no delta is stated.
_USUAL_DELTAS = (1e-10, 1e-2)


def _log_ticks(axis: Any) -> None:
    """Write the ticks of a logarithmic axis as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _stamp(ax: Any) -> None:
    """Write a warning across the data, once per axes, so that cropping keeps it."""
    if any(text.get_text() == SENSITIVE for text in ax.texts):
        return
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    ax.text(
        0.5,
        0.5,
        SENSITIVE,
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize=np.clip(width / (_LETTER * len(SENSITIVE)), 5, 16),
        fontweight="bold",
        color=COLORS[1],
        alpha=0.9,
        zorder=100,
        bbox={"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 2},
    )


def _protection_note(unit: str | None, relation: str | None) -> str:
    """Describe unit of privacy and neighbour relation for an axis."""
    if unit is None:
        return ""
    return f"unit: {unit}" if relation is None else f"unit: {unit}, {relation}"


def _check_comparable(statements: Iterable[PrivacySpent]) -> None:
    """Raise ValueError unless all statements have a guarantee and protect alike."""
    statements = list(statements)
    protected = sorted({(spent.unit, spent.relation) for spent in statements})
    if not protected:
        raise ValueError("There is nothing to draw; pass at least one fit.")
    if len(protected) > 1:
        named = (f"unit={one!r} with relation={other!r}" for one, other in protected)
        raise ValueError(
            f"The statements protect {' and '.join(named)}, so their epsilons cannot "
            "be compared; draw one unit and relation per plot."
        )
    if any(np.isinf(spent.epsilon) for spent in statements):
        raise ValueError(
            "A fit with epsilon=inf has no guarantee and cannot be drawn on an axis "
            "of epsilon. Leave it out, or fit it again without seeded noise, and with "
            "bounds that are not read from private rows."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class AnswerCostDisplay:
    """Plot of publishable epsilon against the number of queries.

    **May be published**: the plot depends on the noise scale and on the numbers of
    queries and classes. Create the display by :meth:`from_estimator` after a fit, or by
    :meth:`from_mechanisms` before a fit. The display needs matplotlib. All parameters
    are stored as attributes.

    Parameters
    ----------
    n_queries : array-like of shape (n_points,)
        Numbers of queries, in increasing order.

    epsilons : dict of str to array-like of shape (n_points,)
        Worst-case epsilon over all votes of a fit with each number of queries, for each
        mechanism.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    paid : tuple (n_queries, epsilon), default=None
        Number of queries and epsilon of a fit, to mark on the plot.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One line per mechanism.

    paid_ : matplotlib Line2D or None
        Point of the fit.

    ax_, figure_ : matplotlib Axes, Figure
        Axes and figure that the display was drawn on.

    See Also
    --------
    EpsilonDeltaDisplay : Privacy cost at other deltas.

    Notes
    -----
    The noise per answer is constant along a line. A fit with a target epsilon would use
    more noise for more queries. A small epsilon grows with about the square root of the
    number of answers. Beyond `max_answers` answers, only the check before an answer has
    a cost, and the line bends.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_pate.inspection import AnswerCostDisplay
    >>> display = AnswerCostDisplay(
    ...     n_queries=[1, 10, 100], epsilons={"some noise": [0.1, 0.3, 1]}, delta=1e-5
    ... )
    >>> [line.get_label() for line in display.plot().lines_]
    ['some noise']
    >>> plt.close(display.figure_)
    """

    n_queries: ArrayLike
    epsilons: Mapping[str, ArrayLike]
    delta: float
    paid: tuple[int, float] | None = None

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. With None, a new figure is created.

        **kwargs : Any
            Arguments of ``ax.plot`` for each line.

        Returns
        -------
        display : AnswerCostDisplay
            The display itself.
        """
        ax = make_axes(type(self), ax)
        self.lines_ = []
        for name, epsilons in self.epsilons.items():
            style = line_style(len(ax.lines)) | {"label": textwrap.fill(name, 40)}
            self.lines_ += ax.plot(self.n_queries, epsilons, **style | kwargs)
        self.paid_ = None
        if self.paid is not None:
            self.paid_ = ax.plot(
                *self.paid,
                marker="o",
                linestyle="none",
                color=self.lines_[-1].get_color(),
                label=f"this fit: {counted(self.paid[0], 'query')}",
            )[0]
        ax.set(
            xlabel="queries",
            ylabel=f"publishable epsilon (delta={self.delta:g})",
            xlim=(0, None),
            ylim=(0, None),
        )
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_queries: int | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the privacy cost of a fit with more or fewer queries.

        Parameters
        ----------
        estimator : estimator
            A fitted :class:`~sklearn_pate.PATEClassifier`,
            :class:`~sklearn_pate.learners.PrivateKNNClassifier` or
            :class:`~sklearn_pate.learners.PETDLClassifier`, or a Pipeline that ends in
            such a classifier. For a PETDLClassifier, a query is a batch of public rows.

        n_queries : int, default=None
            Largest number of queries. Default: twice the number of queries of the fit.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : AnswerCostDisplay
            Drawn display, with the cost of the fit.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        ValueError
            If the estimator has no queries or no guarantee. Also if its privacy cost
            covers more than queries, as for the best candidate of a
            :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn_pate import PublicData
        >>> from sklearn_pate.learners import PrivateKNNClassifier
        >>> from sklearn_pate.inspection import AnswerCostDisplay
        >>> X, y = make_blobs(6000, centers=3, random_state=0)
        >>> clf = PrivateKNNClassifier(n_queries=50)
        >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
        >>> display = AnswerCostDisplay.from_estimator(clf)
        >>> display.paid == (50, clf.privacy_spent_.epsilon)
        True
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        learner = last_step(estimator)
        spent = statement_of(learner)
        _check_comparable([spent])
        mechanism = getattr(learner, "mechanism_", None)
        if spent.n_queries is None or mechanism is None:
            raise ValueError(
                f"{type(learner).__name__} has no mechanism_ that answers queries: "
                "this fit had no votes, as with mechanism='scores'. Pass a "
                "PATEClassifier fitted with mechanism='gnmax', a PrivateKNNClassifier "
                "or a PETDLClassifier."
            )
        before, answering = mechanism.parts
        if isinstance(answering, NoisySum):
            # A fit has one query of many parts; its statement counts the parts.
            answering = clone(answering).set_params(n_parts=1)
        mechanism = answering if before is None else TwoPartRelease(before, answering)
        n_classes = len(learner.classes_)
        of_queries = _epsilon(mechanism, spent.n_queries, n_classes, spent.delta)
        if not np.isclose(of_queries, spent.epsilon, rtol=1e-6, atol=0):
            raise ValueError(
                f"epsilon={spent.epsilon:.4g} of {type(learner).__name__} covers more "
                "than its queries, such as a whole search; pass its mechanism_ to "
                "AnswerCostDisplay.from_mechanisms instead."
            )
        last = 2 * spent.n_queries if n_queries is None else n_queries
        check_count("n_queries", last, 1)
        counts = _counts(last, [answering], also=[spent.n_queries])
        epsilons = _epsilons(mechanism, counts, n_classes, spent.delta)
        display = cls(
            n_queries=counts,
            epsilons={mechanism.in_one_line(): epsilons},
            delta=spent.delta,
            paid=(spent.n_queries, spent.epsilon),
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_mechanisms(
        cls,
        mechanisms: Mapping[str, Mechanism],
        *,
        n_classes: int,
        delta: float,
        n_queries: int,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the privacy cost of answers by several mechanisms.

        The accuracy of the answers is not shown.

        Parameters
        ----------
        mechanisms : dict of str to Mechanism
            Mechanisms whose noise is set, by name. More noise has a lower cost.

        n_classes : int
            Number of classes, at least 2.

        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        n_queries : int
            Largest number of queries.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : AnswerCostDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If the noise of a mechanism is not set. Also if the mechanisms have
            different neighbour relations, for example if only some use secret samples.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_pate.inspection import AnswerCostDisplay
        >>> from sklearn_pate.mechanisms import GumbelMax, NoisyHistogram
        >>> display = AnswerCostDisplay.from_mechanisms(
        ...     {"plurality": GumbelMax(c=0.05), "all counts": NoisyHistogram(40)},
        ...     n_classes=10,
        ...     delta=1e-5,
        ...     n_queries=500,
        ... )
        >>> bool(display.epsilons["plurality"][-1] > display.epsilons["all counts"][-1])
        True
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        delta = check_delta(delta)
        check_count("n_queries", n_queries, 1)
        check_count("n_classes", n_classes, 2)
        _check_mechanisms(mechanisms)
        counts = _counts(n_queries, mechanisms.values())
        epsilons = {
            name: _epsilons(one, counts, n_classes, delta)
            for name, one in mechanisms.items()
        }
        display = cls(n_queries=counts, epsilons=epsilons, delta=delta)
        return display.plot(ax, **kwargs)


def _epsilon(
    mechanism: Mechanism, n_queries: int, n_classes: int, delta: float
) -> float:
    """Return the epsilon that a fit with this number of queries states."""
    with warnings.catch_warnings():
        # For few answers, the best order may be missing, which raises the cost a bit.
        warnings.filterwarnings("ignore", message="The best order")
        return mechanism.cost(int(n_queries), n_classes).epsilon(delta)


def _epsilons(
    mechanism: Mechanism, counts: NDArray[np.int64], n_classes: int, delta: float
) -> NDArray[np.float64]:
    return np.array([_epsilon(mechanism, one, n_classes, delta) for one in counts])


def _counts(
    last: int, mechanisms: Iterable[Mechanism], also: Iterable[int] = ()
) -> NDArray[np.int64]:
    """Return numbers of queries from 1 to the last, with caps and further ones."""
    caps = (
        one.answer_cap(last)
        for one in mechanisms
        if isinstance(one, PluralityMechanism)
    )
    roots = np.linspace(1, np.sqrt(last), _N_COUNTS)
    counts = (roots**2).round().astype(int)
    return np.union1d(counts, [count for count in (*caps, *also) if count <= last])


def _check_mechanisms(mechanisms: Any) -> None:
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        raise ValueError(
            f"mechanisms={mechanisms!r} must be a dict with at least one mechanism, "
            "such as {'GNMax': GNMax(sigma=40)}."
        )
    for name, mechanism in mechanisms.items():
        if not isinstance(mechanism, Mechanism):
            raise ValueError(
                f"mechanisms[{name!r}]={mechanism!r} is not a mechanism; pass one, "
                "such as GNMax(sigma=40)."
            )
    sampled = [isinstance(one, SampledMechanism) for one in mechanisms.values()]
    if any(sampled) and not all(sampled):
        raise ValueError(
            "mechanisms mixes two neighbour relations: secret samples are protected "
            "against an added or removed row, others against one changed vote. Draw "
            "them separately."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class EpsilonDeltaDisplay:
    """Plot of publishable epsilon against delta.

    A release is (epsilon, delta)-differentially private at every point of its line. A
    marker shows the epsilon and delta of the privacy statement. The plot **may be
    published**, like the statements. Create the display by :meth:`from_estimator` or
    :meth:`from_statements`. The display needs matplotlib. All parameters are stored as
    attributes.

    Parameters
    ----------
    deltas : array-like of shape (n_points,)
        Deltas in (0, 1), in increasing order.

    epsilons : dict of str to array-like of shape (n_points,)
        Epsilon at each delta, for each release. Infinite if unknown.

    stated : dict of str to tuple (epsilon, delta)
        Stated epsilon and delta of each release. A delta of 0 is drawn as an arrow at
        the left end of the logarithmic axis.

    unit, relation : str, default=None
        Unit of privacy and neighbour relation of all statements, for the axis label.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One line per release.

    stated_ : list of matplotlib Line2D
        One marker per statement.

    ax_, figure_ : matplotlib Axes, Figure
        Axes and figure that the display was drawn on.

    See Also
    --------
    AnswerCostDisplay : Privacy cost against the number of queries.

    Notes
    -----
    A line shows ``privacy_spent_.epsilon_at(delta)``, the smallest known epsilon, down
    to the smallest delta that the statement resolves.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_pate.inspection import EpsilonDeltaDisplay
    >>> display = EpsilonDeltaDisplay(
    ...     deltas=[1e-7, 1e-5],
    ...     epsilons={"a fit": [1.2, 1.0]},
    ...     stated={"a fit": (1.0, 1e-5)},
    ... )
    >>> [line.get_label() for line in display.plot().lines_]
    ['a fit']
    >>> plt.close(display.figure_)
    """

    deltas: ArrayLike
    epsilons: Mapping[str, ArrayLike]
    stated: Mapping[str, tuple[float, float]]
    unit: str | None = None
    relation: str | None = None

    def __post_init__(self) -> None:
        if (self.unit, self.relation) != (None, None):
            check_neighbours(self.unit, self.relation)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. With None, a new figure is created.

        **kwargs : Any
            Arguments of ``ax.plot`` for each line.

        Returns
        -------
        display : EpsilonDeltaDisplay
            The display itself.
        """
        ax = make_axes(type(self), ax)
        left_end = np.min(self.deltas)
        self.lines_, self.stated_, labels = [], [], set()
        for name, epsilons in self.epsilons.items():
            # Each statement has a line and a marker.
            style = line_style(len(ax.lines) // 2) | {"label": name}
            self.lines_ += ax.plot(self.deltas, epsilons, **style | kwargs)
            epsilon, delta = self.stated[name]
            label = "as stated" if delta else "as stated, with a delta of 0"
            self.stated_ += ax.plot(
                delta or left_end,
                epsilon,
                marker="o" if delta else "<",
                linestyle="none",
                color=self.lines_[-1].get_color(),
                label=None if label in labels else label,
            )
            labels.add(label)
        about = _protection_note(self.unit, self.relation)
        ax.set(
            xscale="log",
            xlabel="delta",
            ylabel=f"publishable epsilon{about and f' ({about})'}",
            ylim=(0, None),
        )
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the statement of a fit.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``privacy_spent_``, or a Pipeline that ends in such an
            estimator.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : EpsilonDeltaDisplay
            Drawn display.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        ValueError
            If the estimator has no guarantee.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn_pate.learners import DPLogisticRegression
        >>> from sklearn_pate.inspection import EpsilonDeltaDisplay
        >>> X, y = make_blobs(500, centers=2, random_state=0)
        >>> clf = DPLogisticRegression(data_norm=8).fit(X, y)
        >>> display = EpsilonDeltaDisplay.from_estimator(clf)
        >>> display.stated
        {'DPLogisticRegression': (1.0, 0.0)}
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        learner = last_step(estimator)
        stated = {type(learner).__name__: statement_of(learner)}
        return cls.from_statements(stated, ax=ax, **kwargs)

    @classmethod
    def from_statements(
        cls, statements: Mapping[str, PrivacySpent], *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw several statements, to compare them.

        Parameters
        ----------
        statements : dict of str to PrivacySpent
            Privacy statements by name, all with equal unit and relation.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : EpsilonDeltaDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If units or relations differ, or one statement has no guarantee.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn_pate.learners import DPLogisticRegression
        >>> from sklearn_pate.inspection import EpsilonDeltaDisplay
        >>> X, y = make_blobs(500, centers=2, random_state=0)
        >>> statements = {
        ...     f"epsilon={epsilon}": DPLogisticRegression(
        ...         epsilon=epsilon, data_norm=8
        ...     ).plan_privacy(X, y)
        ...     for epsilon in [0.5, 1.0]
        ... }
        >>> display = EpsilonDeltaDisplay.from_statements(statements)
        >>> len(display.lines_), display.unit, display.relation
        (2, 'row', 'replace-one')
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        _check_statements(statements)
        _check_comparable(statements.values())
        deltas = _deltas(statements.values())
        first = next(iter(statements.values()))
        display = cls(
            deltas=deltas,
            epsilons={
                name: np.array([spent.epsilon_at(delta) for delta in deltas])
                for name, spent in statements.items()
            },
            stated={
                name: (spent.epsilon, spent.delta) for name, spent in statements.items()
            },
            unit=first.unit,
            relation=first.relation,
        )
        return display.plot(ax, **kwargs)


def _check_statements(statements: Any) -> None:
    if not isinstance(statements, Mapping):
        raise ValueError(
            f"statements={statements!r} must be a dict, such as "
            "{'PATE': clf.privacy_spent_}."
        )
    for name, spent in statements.items():
        if not isinstance(spent, PrivacySpent):
            raise ValueError(
                f"statements[{name!r}]={spent!r} is not a PrivacySpent; pass the "
                "privacy_spent_ of a fit."
            )


def _deltas(statements: Collection[PrivacySpent]) -> NDArray[np.float64]:
    """Return deltas around the stated ones, which at least one statement resolves."""
    stated = [spent.delta for spent in statements if spent.delta > 0]
    low, high = _USUAL_DELTAS
    if stated:
        low = min(stated) / _AROUND
        high = max(min(max(stated) * _AROUND, _LARGEST_DELTA), *stated)
    resolved = min(float(spent.profile.deltas[-1]) for spent in statements)
    low = min(max(low, resolved), high)
    return np.union1d(np.geomspace(low, high, _N_POINTS), stated)


def _scores_of_estimators(
    estimators: Sequence[Any], X: Any, y: ArrayLike, scoring: Any
) -> dict[str, Any]:
    """Score fitted private estimators, after a check that they are comparable."""
    if hasattr(estimators, "fit"):  # a Pipeline is a sequence of its steps
        raise ValueError(
            f"estimators is a single {type(estimators).__name__}; pass a list of "
            "fitted estimators, such as [clf]."
        )
    statements = [statement_of(last_step(one)) for one in estimators]
    _check_comparable(statements)
    return {
        "epsilons": [spent.epsilon for spent in statements],
        "scores": [check_scoring(one, scoring)(one, X, y) for one in estimators],
        "score_name": _name_of(scoring),
        "delta": max(spent.delta for spent in statements),
        "unit": statements[0].unit,
        "relation": statements[0].relation,
    }


def _scores_of_search(search: Any, metric: str | None) -> dict[str, Any]:
    """Read the scores of a search over epsilon, or of its ``cv_results_``."""
    results = getattr(search, "cv_results_", search)
    if not isinstance(results, Mapping):
        is_search = hasattr(search, "refit")
        raise (NotFittedError if is_search else ValueError)(
            f"search has no cv_results_, as {type(search).__name__} is not a search "
            "or is not fitted; pass a fitted GridSearchCV, or its cv_results_."
        )
    scoring = getattr(search, "scoring", None) if metric is None else metric
    epsilons = _epsilons_of(results)
    splits = _scores_of_splits(results, "score" if metric is None else metric)
    scores = {
        "epsilons": np.repeat(epsilons, len(splits)),
        "scores": np.transpose(splits).ravel(),
        "score_name": _name_of(scoring),
    }
    if hasattr(search, "best_estimator_"):
        spent = statement_of(last_step(search.best_estimator_))
        _check_comparable([spent])
        names = ("delta", "unit", "relation")
        scores |= {name: getattr(spent, name) for name in names}
    return scores


def _mean_scores(
    epsilons: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Average the fits of each target epsilon.

    Returns, for increasing targets, the largest epsilon, the mean score, and the
    standard deviation of the scores, which is NaN for a single fit.
    """
    epsilons = np.asarray(epsilons, dtype=np.float64)
    scores = np.asarray(scores, dtype=np.float64)
    if epsilons.ndim != 1 or not epsilons.size or epsilons.shape != scores.shape:
        raise ValueError(
            f"epsilons has shape {epsilons.shape} and scores has {scores.shape}; pass "
            "one epsilon and one score per fit."
        )
    if not np.all((epsilons > 0) & np.isfinite(epsilons)):
        raise ValueError(
            f"epsilons={epsilons.tolist()} must be positive and finite; leave out "
            "fits without a guarantee, or pass their score as baseline."
        )
    if not np.all(np.isfinite(scores)):
        raise ValueError(
            "scores has NaN or infinity, perhaps from a failed fit; leave this fit out."
        )
    order = np.argsort(epsilons, kind="stable")
    epsilons, scores = epsilons[order], scores[order]
    starts = [0]
    for place, epsilon in enumerate(epsilons):
        if epsilon > (1 + _ONE_TARGET) * epsilons[starts[-1]]:
            starts.append(place)
    groups = np.split(scores, starts[1:])
    return (
        np.array([group[-1] for group in np.split(epsilons, starts[1:])]),
        np.array([group.mean() for group in groups]),
        # Unknown for one fit, and not drawn.
        np.array([group.std(ddof=1) if len(group) > 1 else np.nan for group in groups]),
    )


def _epsilons_of(results: Mapping[str, Any]) -> list[float]:
    """Read the epsilon of each candidate of a search, if nothing else differs."""
    names = [key.removeprefix("param_") for key in results if key.startswith("param_")]
    chosen = [name for name in names if name.rpartition("__")[2] == "epsilon"]
    if len(chosen) != 1:
        raise ValueError(
            f"The search is over {names}, which must include one epsilon; search over "
            "'epsilon', or 'pate__epsilon' for a step 'pate' of a Pipeline."
        )
    for name in names:
        values = {repr(value) for value in results[f"param_{name}"]}
        if name not in chosen and len(values) > 1:
            raise ValueError(
                f"The search is also over {name}, so that one epsilon has several "
                f"scores; search over {chosen[0]} only."
            )
    epsilons = list(results[f"param_{chosen[0]}"])
    for epsilon in epsilons:
        if not is_positive(epsilon):
            raise ValueError(
                f"A candidate has {chosen[0]}={epsilon!r}, which cannot be drawn on "
                "an axis of epsilon; search over positive numbers."
            )
    return epsilons


def _scores_of_splits(
    results: Mapping[str, Any], metric: str
) -> list[NDArray[np.float64]]:
    """Read the scores of the candidates of a search, one array per split."""
    n_splits = 0
    while f"split{n_splits}_test_{metric}" in results:
        n_splits += 1
    if not n_splits:
        known = [
            key.removeprefix("mean_test_")
            for key in results
            if key.startswith("mean_test_")
        ]
        raise ValueError(
            f"metric={metric!r} is unknown to the search; use one of {known}."
        )
    return [results[f"split{split}_test_{metric}"] for split in range(n_splits)]


def _name_of(scoring: Any) -> str:
    return scoring.replace("_", " ") if isinstance(scoring, str) else "score"


def _check_sensitivity(sensitive: Any, baseline: Any) -> None:
    """Raise ValueError unless sensitivity and baseline of a display are valid."""
    if not isinstance(sensitive, bool):
        raise ValueError(
            f"sensitive={sensitive!r} must be True or False; pass True unless scores "
            "and baseline come from public rows only."
        )
    is_number = isinstance(baseline, Real) and not isinstance(baseline, bool)
    if baseline is not None and not (is_number and np.isfinite(baseline)):
        raise ValueError(
            f"baseline={baseline!r} must be a finite number, the score without "
            "privacy, or None."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyUtilityDisplay:
    """Plot of scores of private estimators against publishable epsilon.

    Create the display by :meth:`from_estimators`, :meth:`from_predictions` or
    :meth:`from_cv_results`. The display needs matplotlib. All parameters are stored as
    attributes.

    Parameters
    ----------
    epsilons : array-like of shape (n_fits,)
        Publishable epsilon of each fit, positive and finite.

    scores : array-like of shape (n_fits,)
        Score of each fit.

    sensitive : bool
        Whether scores are computed on private rows, or `baseline` was trained on
        private rows. With True, the plot has a warning stamp. With False, the plot may
        be published at the privacy cost of all fits together.

    baseline : float, default=None
        Score of a model without privacy. **The baseline is as sensitive as the training
        rows of that model**.

    delta : float, default=None
        Delta of the (epsilon, delta) guarantee, for the axis label.

    unit, relation : str, default=None
        Unit of privacy and neighbour relation of all fits, for the axis label.

    score_name : str, default="score"
        Name of the score, for the axis label.

    Attributes
    ----------
    line_ : matplotlib Line2D
        Line through the mean scores.

    errorbar_ : matplotlib ErrorbarContainer
        Standard deviations of scores with equal epsilon.

    baseline_ : matplotlib Line2D or None
        Dashed line of the baseline.

    ax_, figure_ : matplotlib Axes, Figure
        Axes and figure that the display was drawn on.

    See Also
    --------
    AnswerCostDisplay : Privacy cost against the number of queries.

    Notes
    -----
    Fits whose epsilons differ by at most one percent share a point, at the largest
    epsilon. No fit is drawn below its stated epsilon.

    The privacy cost of the plot is the sum of ``privacy_spent_.curve`` of all fits, if
    no fit was chosen from results of another fit.

    An infinite epsilon raises an error, as it is not a guarantee. The score of a fit
    with infinite epsilon may be the `baseline`.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_pate.inspection import PrivacyUtilityDisplay
    >>> display = PrivacyUtilityDisplay(
    ...     epsilons=[0.5, 1, 1, 2], scores=[0.71, 0.82, 0.84, 0.88], sensitive=False
    ... ).plot()
    >>> display.line_.get_xdata().tolist()
    [0.5, 1.0, 2.0]
    >>> plt.close(display.figure_)
    """

    epsilons: ArrayLike
    scores: ArrayLike
    sensitive: bool
    baseline: float | None = None
    delta: float | None = None
    unit: str | None = None
    relation: str | None = None
    score_name: str = "score"

    def __post_init__(self) -> None:
        if (self.unit, self.relation) != (None, None):
            check_neighbours(self.unit, self.relation)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. With None, a new figure is created. Axes with another
            display of equal unit and relation get a further line.

        **kwargs : Any
            Arguments of ``ax.errorbar``. The legend shows `label`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The display itself.

        Raises
        ------
        ValueError
            If the parameters are invalid.
        """
        _check_sensitivity(self.sensitive, self.baseline)
        epsilons, means, deviations = _mean_scores(self.epsilons, self.scores)
        ax = make_axes(type(self), ax)
        style = point_style(len(ax.containers)) | {"capsize": 3} | kwargs
        self.errorbar_ = ax.errorbar(epsilons, means, yerr=deviations, **style)
        self.line_ = self.errorbar_[0]
        self.baseline_ = None
        if self.baseline is not None:
            self.baseline_ = ax.axhline(
                self.baseline, color="0.35", linestyle="--", label="without privacy"
            )
        ax.set(xscale="log", xlabel=self._epsilon_name(), ylabel=self.score_name)
        _log_ticks(ax.xaxis)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False)
        if self.sensitive:
            _stamp(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[Any],
        X: Any,
        y: ArrayLike,
        *,
        sensitive: bool,
        scoring: Any = None,
        baseline: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Score fitted private estimators, and draw the scores.

        Parameters
        ----------
        estimators : sequence of estimators
            Fitted estimators, or Pipelines, whose ``privacy_spent_`` have equal unit
            and relation.

        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows to score on.

        y : array-like of shape (n_rows,)
            Labels of the rows of X.

        sensitive : bool
            Whether the rows to score on are private, or `baseline` was trained on
            private rows. True puts a warning stamp on the plot.

        scoring : str or callable, default=None
            Argument of :func:`~sklearn.metrics.check_scoring`. Default: ``score`` of
            the estimators.

        baseline : float, default=None
            Score of a model without privacy, **as sensitive as the training rows of
            that model**.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If a parameter is invalid, an estimator has no finite epsilon, or units or
            relations differ. Nothing was scored.

        NotFittedError
            If an estimator is not fitted. Nothing was scored.

        Notes
        -----
        If deltas differ, the axis label has the largest delta: a guarantee also holds
        at a larger delta.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn_pate.learners import DPLogisticRegression
        >>> from sklearn_pate.inspection import PrivacyUtilityDisplay
        >>> X, y = make_blobs(3000, centers=2, random_state=0)
        >>> fits = [
        ...     DPLogisticRegression(epsilon=one, data_norm=8).fit(X[:2000], y[:2000])
        ...     for one in [0.1, 1, 10]
        ... ]
        >>> display = PrivacyUtilityDisplay.from_estimators(
        ...     fits, X[2000:], y[2000:], sensitive=True
        ... )
        >>> display.epsilons
        [0.1, 1.0, 10.0]
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        _check_sensitivity(sensitive, baseline)
        fits = _scores_of_estimators(estimators, X, y, scoring)
        display = cls(**fits, sensitive=sensitive, baseline=baseline)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: Sequence[ArrayLike],
        epsilons: ArrayLike,
        *,
        sensitive: bool,
        score_func: Callable[..., float] = accuracy_score,
        baseline: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Score predictions, and draw the scores.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Labels.

        predictions : sequence of array-like of shape (n_rows,)
            Predictions of each fit: labels, or another input of `score_func`.

        epsilons : array-like of shape (n_fits,)
            Publishable epsilon of each fit. All fits must have equal unit, relation and
            delta, which is not checked.

        sensitive : bool
            Whether the rows to score on are private, or `baseline` was trained on
            private rows. True puts a warning stamp on the plot.

        score_func : callable, default=accuracy_score
            Function of true labels and predictions that returns a number.

        baseline : float, default=None
            Score of a model without privacy, **as sensitive as the training rows of
            that model**.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If `sensitive` is neither True nor False, `baseline` is not a number, or
            numbers of epsilons and predictions differ.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_pate.inspection import PrivacyUtilityDisplay
        >>> display = PrivacyUtilityDisplay.from_predictions(
        ...     [0, 1, 1, 0], [[0, 1, 0, 1], [0, 1, 1, 0]], [0.5, 4], sensitive=False
        ... )
        >>> display.line_.get_ydata().tolist()
        [0.5, 1.0]
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        _check_sensitivity(sensitive, baseline)
        name = getattr(score_func, "__name__", "score").removesuffix("_score")
        display = cls(
            epsilons=epsilons,
            scores=[score_func(y_true, y_pred) for y_pred in predictions],
            sensitive=sensitive,
            baseline=baseline,
            score_name=_name_of(name),
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_cv_results(
        cls,
        search: Any,
        *,
        sensitive: bool,
        metric: str | None = None,
        baseline: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of a search over epsilon.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV or dict
            Fitted search, or its ``cv_results_``. The only parameter must be `epsilon`
            of a private estimator, or of a Pipeline step, such as ``pate__epsilon``.

        sensitive : bool
            Whether the rows of the search are private, or `baseline` was trained on
            private rows. True puts a warning stamp on the plot.

        metric : str, default=None
            Name of the metric to draw, for a search with several metrics.

        baseline : float, default=None
            Score of a model without privacy, **as sensitive as the training rows of
            that model**.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn display, with one point per candidate and the standard deviation over
            splits.

        Raises
        ------
        ValueError
            If a parameter is invalid, the search is not over epsilon alone, a fit
            failed, or the selected fit has no finite epsilon.

        NotFittedError
            If the search is not fitted.

        Notes
        -----
        The axis has the target epsilons of the candidates. No privacy statement covers
        the search: scores have no noise, and are computed on rows that other fits used.
        Unit, relation and delta are read from the selected fit. For ``cv_results_``
        alone, and with ``refit=False``, unit, relation and delta are unknown.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.model_selection import GridSearchCV, KFold
        >>> from sklearn_pate.learners import DPLogisticRegression
        >>> from sklearn_pate.inspection import PrivacyUtilityDisplay
        >>> X, y = make_blobs(3000, centers=2, random_state=0)
        >>> learner = DPLogisticRegression(data_norm=8)
        >>> search = GridSearchCV(learner, {"epsilon": [0.1, 1]}, cv=KFold(3))
        >>> display = PrivacyUtilityDisplay.from_cv_results(
        ...     search.fit(X, y), sensitive=True
        ... )
        >>> display.line_.get_xdata().tolist()
        [0.1, 1.0]
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        _check_sensitivity(sensitive, baseline)
        fits = _scores_of_search(search, metric)
        display = cls(**fits, sensitive=sensitive, baseline=baseline)
        return display.plot(ax, **kwargs)

    def _epsilon_name(self) -> str:
        delta = "" if self.delta is None else f"delta={self.delta:g}"
        notes = (delta, _protection_note(self.unit, self.relation))
        about = ", ".join(filter(None, notes))
        return f"epsilon of each fit{about and f' ({about})'}"
