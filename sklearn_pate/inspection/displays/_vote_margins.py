"""Plot of vote margins and of answers changed by noise. Sensitive."""

from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._exact import log_losing
from sklearn_pate.accounting.plurality._unique_queries import check_counts
from sklearn_pate.inspection.displays._plotting import (
    COLORS,
    fitted_last_step,
    make_axes,
    require_matplotlib,
    stamp,
)
from sklearn_pate.mechanisms import Mechanism

__all__ = ["VoteMarginsDisplay"]

# The width of the noise is the margin at which it changes one answer in twenty.
_ONE_IN = 20


class VoteMarginsDisplay:
    """Margins of the votes, compared with the noise. Sensitive: not for publication.

    A margin is the largest vote count of a query minus the second largest. Well above
    the width of the noise, answers are those of the teachers; far below, noise decides,
    and better or more teachers or less noise are needed.

    The votes depend on private data without noise, which no statement covers: the plot
    is always stamped. A choice of parameters by this plot is not covered, either:
    choose them on public or made-up rows.

    Create it by :meth:`from_estimator` or :meth:`from_counts`. It needs matplotlib. All
    parameters are stored as attributes. It cannot be pickled.

    Parameters
    ----------
    margins : array-like of int of shape (n_queries,)
        Margin of each query, in votes.

    n_teachers : int
        Number of teachers, abstaining ones included.

    turned : array-like of shape (n_queries,), default=None
        Probability that noise changes each answer to another class than that with most
        votes, if there is an answer.

    width : int, default=None
        Least margin between two classes at which noise changes at most one answer in
        twenty.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        Numbers of queries.

    turned_bars_ : matplotlib BarContainer or None
        Expected numbers of answers that noise changes.

    line_ : matplotlib Line2D or None
        Width of the noise; outside the axes if it is larger than any margin.

    ax_, figure_ : matplotlib Axes, Figure
        Axes and figure that the display was drawn on.

    See Also
    --------
    AnswerCostDisplay : Privacy cost of answers. May be published.

    Notes
    -----
    The probability that noise changes an answer is exact: one minus that of the class
    with most votes. If there may be no answer
    (:class:`~sklearn_pate.mechanisms.ConfidentGNMax`), it is conditional on one.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_pate.inspection import VoteMarginsDisplay
    >>> display = VoteMarginsDisplay(margins=[80, 60, 3], n_teachers=100).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['SENSITIVE: depends on private data, do not publish']
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        margins: ArrayLike,
        n_teachers: int,
        turned: ArrayLike | None = None,
        width: int | None = None,
    ) -> None:
        self.margins = margins
        self.n_teachers = n_teachers
        self.turned = turned
        self.width = width

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "A VoteMarginsDisplay is sensitive and cannot be pickled or copied; create "
            "it again from the fit."
        )

    def plot(self, ax: Any = None, *, bins: Any = 20, **kwargs: Any) -> Self:
        """Draw the display, with a warning stamp.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None means those of a new figure.

        bins : int or sequence, default=20
            Argument of ``ax.hist``, for the range from 0 to 1.

        **kwargs : Any
            Further arguments of ``ax.hist`` for the queries.

        Returns
        -------
        display : VoteMarginsDisplay
            The display itself.
        """
        ax = make_axes(type(self), ax)
        shares = np.asarray(self.margins) / self.n_teachers
        edges = np.histogram_bin_edges(shares, bins, range=(0, 1))
        style = {"color": COLORS[0], "label": counted(len(shares), "query")}
        *_, self.bars_ = ax.hist(shares, edges, **style | kwargs)
        self.turned_bars_ = self.line_ = None
        if self.turned is not None:
            *_, self.turned_bars_ = ax.hist(
                shares,
                edges,
                weights=self.turned,
                color=COLORS[4],
                hatch="///",
                edgecolor="white",
                label=f"changed by noise, on average {np.sum(self.turned):.1f}",
            )
        if self.width is not None:
            beyond = ", more than exist" if self.width > self.n_teachers else ""
            self.line_ = ax.axvline(
                self.width / self.n_teachers,
                color="black",
                linestyle="--",
                label=f"one in {_ONE_IN} is changed at "
                f"{counted(self.width, 'vote')}{beyond}",
            )
        ax.set(
            xlabel="margin of the votes, as a share of "
            f"{counted(self.n_teachers, 'teacher')}",
            ylabel="queries",
            xlim=(0, 1),
        )
        ax.margins(y=0.35)  # space for the legend
        ax.legend(fontsize="small", loc="upper left", framealpha=1)
        stamp(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, sensitive: bool = False, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the margins of a fit. Sensitive.

        Parameters
        ----------
        estimator : estimator
            Fitted :class:`~sklearn_pate.PATEClassifier`, or a Pipeline that ends in
            one. A pickled, copied or published one has no votes.

        sensitive : bool, default=False
            Must be True, to confirm that the plot is private.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : VoteMarginsDisplay
            Drawn display, with the stamp.

        Raises
        ------
        ValueError
            If `sensitive` is not True, or the estimator has no votes.

        NotFittedError
            If the estimator is not fitted.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from sklearn_pate import PATEClassifier, PublicData
        >>> from sklearn_pate.inspection import VoteMarginsDisplay
        >>> X, y = make_blobs(6000, centers=3, random_state=0)
        >>> clf = PATEClassifier(
        ...     GaussianNB(), n_teachers=200, n_queries=50, mechanism="gumbel"
        ... )
        >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
        >>> display = VoteMarginsDisplay.from_estimator(clf, sensitive=True)
        >>> display.margins.shape, display.n_teachers
        ((50,), 200)
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        _check_sensitive(sensitive)
        learner = fitted_last_step(estimator)
        analysis = getattr(learner, "privacy_analysis_", None)
        # A noisy sum of vectors has no votes.
        if analysis is None or not isinstance(analysis.mechanism, Mechanism):
            raise ValueError(
                f"{type(learner).__name__} has no votes in a privacy_analysis_: it was "
                "pickled, copied or published, or this fit had no votes, as with "
                "mechanism='scores'; pass a PATEClassifier after a fit with "
                "mechanism='gnmax'."
            )
        return cls.from_counts(
            analysis.counts,
            n_teachers=analysis.n_teachers,
            sensitive=sensitive,
            mechanism=analysis.mechanism,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        n_teachers: int,
        sensitive: bool = False,
        mechanism: Mechanism | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margins of votes. Sensitive.

        Parameters
        ----------
        counts : array-like of int of shape (n_queries, n_classes)
            Vote counts, without noise.

        n_teachers : int
            Number of teachers, abstaining ones included.

        sensitive : bool, default=False
            Must be True, also for made-up votes, as the plot is always stamped.

        mechanism : Mechanism, default=None
            Mechanism with its noise set. None means to draw the margins alone.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : VoteMarginsDisplay
            Drawn display, with the stamp.

        Raises
        ------
        ValueError
            If `sensitive` is not True, a query has more votes than teachers, or the
            mechanism has no noise set.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_pate.inspection import VoteMarginsDisplay
        >>> from sklearn_pate.mechanisms import GNMax
        >>> display = VoteMarginsDisplay.from_counts(
        ...     [[90, 10], [52, 48]],
        ...     n_teachers=100,
        ...     sensitive=True,
        ...     mechanism=GNMax(sigma=20),
        ... )
        >>> display.margins.tolist(), display.turned.round(2).tolist()
        ([80, 4], [0.0, 0.44])
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        _check_sensitive(sensitive)
        counts = _check_votes(counts, n_teachers)
        turned = width = None
        if mechanism is not None:
            law = _law(mechanism)
            turned, width = np.exp(log_losing(law, counts)), _width(law)
        ranked = np.sort(counts, axis=1).astype(np.int64)
        display = cls(
            margins=ranked[:, -1] - ranked[:, -2],
            n_teachers=int(n_teachers),
            turned=turned,
            width=width,
        )
        return display.plot(ax, **kwargs)


def _check_sensitive(sensitive: Any) -> None:
    if sensitive is not True:
        raise ValueError(
            f"sensitive={sensitive!r}: margins are those of private votes without "
            "noise, which no statement covers; pass sensitive=True and do not publish "
            "the plot, or draw AnswerCostDisplay, which may be published."
        )


def _check_votes(counts: ArrayLike, n_teachers: Any) -> NDArray[np.float64]:
    counts = check_counts(counts)
    if not len(counts):
        raise ValueError("counts has no query; pass one row per query.")
    check_count("n_teachers", n_teachers)
    if n_teachers < max(counts.sum(axis=1)):
        raise ValueError(
            f"n_teachers={n_teachers!r} is not the number of teachers, as one query "
            f"has {counted(int(counts.sum(axis=1).max()), 'vote')}; pass at least as "
            "many."
        )
    return counts


def _law(mechanism: Any) -> Any:
    if not isinstance(mechanism, Mechanism):
        raise ValueError(
            f"mechanism={mechanism!r} is not a Mechanism; pass one with its noise set, "
            "such as GNMax(sigma=40), or None."
        )
    mechanism._check_noise()
    return mechanism._known_plurality()


def _width(law: Any) -> int:
    """Return the least margin of two classes with one wrong answer in twenty."""

    def turns_more(margin: int) -> bool:
        return bool(log_losing(law, [[margin, 0]])[0] > -np.log(_ONE_IN))

    low, high = -1, 1
    while turns_more(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if turns_more(middle) else (low, middle)
    return high
