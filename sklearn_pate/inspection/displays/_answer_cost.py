"""Plot of the privacy cost against the number of queries."""

import textwrap
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate._estimators._delegation import last_step
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.inspection.displays._plotting import (
    check_comparable,
    line_style,
    make_axes,
    require_matplotlib,
    statement_of,
)
from sklearn_pate.mechanisms import NoisySum
from sklearn_pate.mechanisms._mechanism import AccountedMechanism
from sklearn_pate.mechanisms._poisson_sampled import SampledMechanism
from sklearn_pate.mechanisms._two_parts import parts_of, with_counts

__all__ = ["AnswerCostDisplay"]

# Costs are almost a straight line against the root of the number of queries.
_N_POINTS = 40


class AnswerCostDisplay:
    """Publishable epsilon against the number of queries.

    **May be published**: it depends on noise and on the numbers of queries and classes.
    Create it by :meth:`from_estimator`, after a fit, or by :meth:`from_mechanisms`,
    before one. It needs matplotlib. All parameters are stored as attributes.

    Parameters
    ----------
    n_queries : array-like of shape (n_points,)
        Numbers of queries, in increasing order.

    epsilons : dict of str to array-like of shape (n_points,)
        Privacy cost that a fit with these queries states, by mechanism: the worst case
        over all votes.

    delta : float
        Probability mass that epsilon does not cover.

    paid : tuple (n_queries, epsilon), default=None
        Queries and privacy cost of a fit.

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
    The noise of each answer is the same along a line; a fit with a target epsilon would
    use more noise for more queries. The first answers cost most: a small epsilon grows
    with about the square root of the number of answers. Beyond `max_answers`, the check
    alone has a cost, and the line bends.

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

    def __init__(
        self,
        *,
        n_queries: ArrayLike,
        epsilons: Mapping[str, ArrayLike],
        delta: float,
        paid: tuple[int, float] | None = None,
    ) -> None:
        self.n_queries = n_queries
        self.epsilons = epsilons
        self.delta = delta
        self.paid = paid

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None means those of a new figure.

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
            :class:`~sklearn_pate.baselines.PrivateKNNClassifier` or
            :class:`~sklearn_pate.baselines.PETDLClassifier`, or a Pipeline that ends in
            one. A query of the last is a batch of public rows, as in its statement.

        n_queries : int, default=None
            Last number of queries. None means twice those of the fit.

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
            If the estimator has no queries or no guarantee, or states the cost of more
            than its queries, such as the winner of a
            :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn_pate import PublicData
        >>> from sklearn_pate.baselines import PrivateKNNClassifier
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
        spent, learner = statement_of(estimator), last_step(estimator)
        check_comparable([spent])
        mechanism = getattr(learner, "mechanism_", None)
        if spent.n_queries is None or mechanism is None:
            raise ValueError(
                f"{type(learner).__name__} has no mechanism_ that answers queries: "
                "this fit had no votes, as with mechanism='scores'; pass a "
                "PATEClassifier fitted with mechanism='gnmax', a PrivateKNNClassifier "
                "or a PETDLClassifier."
            )
        before, answering = parts_of(mechanism)
        if isinstance(answering, NoisySum):
            # A fit has one query of many parts; its statement counts the parts.
            answering = clone(answering).set_params(n_parts=1)
        mechanism = with_counts(before, answering)
        n_classes = len(learner.classes_)
        of_queries = _epsilon(mechanism, spent.n_queries, n_classes, spent.delta)
        if not np.isclose(of_queries, spent.epsilon, rtol=1e-6, atol=0):
            raise ValueError(
                f"{type(learner).__name__} states epsilon={spent.epsilon:.4g} for more "
                "than its queries, such as the search that it won; pass its "
                "mechanism_ to AnswerCostDisplay.from_mechanisms instead."
            )
        last = 2 * spent.n_queries if n_queries is None else n_queries
        check_count("n_queries", last, 1)
        counts = _counts(last, {spent.n_queries, answering.answer_cap(last)})
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
        mechanisms: Mapping[str, AccountedMechanism],
        *,
        n_classes: int,
        delta: float,
        n_queries: int,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the privacy cost of answers of several mechanisms.

        The accuracy of the answers is not shown.

        Parameters
        ----------
        mechanisms : dict of str to Mechanism
            Mechanisms with their noise set, by name. More noise has a lower cost.

        n_classes : int
            Number of classes, at least 2.

        delta : float
            Probability mass that epsilon does not cover, in (0, 1).

        n_queries : int
            Last number of queries.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : AnswerCostDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If a mechanism has no noise set, or seeded noise, or if some use secret
            samples and others do not, as their neighbouring data sets differ.

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
        bends = {one.answer_cap(n_queries) for one in mechanisms.values()}
        counts = _counts(n_queries, bends)
        epsilons = {
            name: _epsilons(one, counts, n_classes, delta)
            for name, one in mechanisms.items()
        }
        display = cls(n_queries=counts, epsilons=epsilons, delta=delta)
        return display.plot(ax, **kwargs)


def _epsilon(
    mechanism: AccountedMechanism, n_queries: int, n_classes: int, delta: float
) -> float:
    """Return the epsilon that a fit with this number of queries states."""
    with warnings.catch_warnings():
        # For few answers, the best order may be missing, which raises the cost a bit.
        warnings.filterwarnings("ignore", message="The best order")
        return mechanism.stated_epsilon(int(n_queries), n_classes, delta)


def _epsilons(
    mechanism: AccountedMechanism,
    counts: NDArray[np.int64],
    n_classes: int,
    delta: float,
) -> NDArray[np.float64]:
    return np.array([_epsilon(mechanism, one, n_classes, delta) for one in counts])


def _counts(last: int, also: Iterable[int]) -> NDArray[np.int64]:
    """Return numbers of queries from 1 to the last, with further ones."""
    roots = np.linspace(1, np.sqrt(last), _N_POINTS)
    counts = (roots**2).round().astype(int)
    return np.union1d(counts, [count for count in also if count <= last])


def _check_mechanisms(mechanisms: Any) -> None:
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        raise ValueError(
            f"mechanisms={mechanisms!r} must be a dict with at least one mechanism, "
            "such as {'GNMax': GNMax(sigma=40)}."
        )
    for name, mechanism in mechanisms.items():
        if not isinstance(mechanism, AccountedMechanism):
            raise ValueError(
                f"mechanisms[{name!r}]={mechanism!r} is no mechanism; pass one, such "
                "as GNMax(sigma=40)."
            )
        if mechanism.noise_seed is not None:
            raise ValueError(
                f"mechanisms[{name!r}] has noise_seed={mechanism.noise_seed!r}, which "
                "voids every guarantee, and has no cost; leave noise_seed=None."
            )
    sampled = [isinstance(one, SampledMechanism) for one in mechanisms.values()]
    if any(sampled) and not all(sampled):
        raise ValueError(
            "mechanisms has some with secret samples, whose neighbouring data sets add "
            "or remove a row, and some for one changed vote; draw them separately."
        )
