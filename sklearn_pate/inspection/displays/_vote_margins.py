"""VoteMarginsDisplay: how many answers noise can turn. Sensitive."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

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

# The width of the noise is the margin at which it turns one answer in so many.
_ONE_IN = 20


class VoteMarginsDisplay:
    """Margins of the votes, beside the noise. Sensitive: not for publication.

    A margin is the largest count of a query minus the second largest. Where it is
    well above the width of the noise, answers are what the teachers say; where it is
    far below, noise decides, and only better teachers, more of them, or less noise
    help.

    The votes are the private data's, without noise. No statement covers what this shows
    of them, and the picture is always stamped. To look at it and then change
    parameters is a choice by private data, which no statement covers either: do it on
    public or made-up rows.

    It is best made by :meth:`from_estimator` or :meth:`from_counts`; all parameters are
    stored as attributes. It cannot be pickled.

    Parameters
    ----------
    margins : array-like of int of shape (n_queries,)
        In votes.

    n_teachers : int
        Number of teachers, abstaining ones included.

    turned : array-like of shape (n_queries,), default=None
        Probability that noise turns each answer: that it is not the class with most
        votes, if there is an answer.

    width : int, default=None
        The least margin between two classes at which noise turns one answer in twenty,
        or fewer.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        Queries.

    turned_bars_ : matplotlib BarContainer or None
        How many of them noise is expected to turn.

    line_ : matplotlib Line2D or None
        The width of the noise. Outside the axes, as its label says, where no margin
        can be as wide.

    ax_ : matplotlib Axes
        Where it was drawn.

    figure_ : matplotlib Figure
        That of the axes.

    See Also
    --------
    AnswerCostDisplay : What answers cost. May be published.

    Notes
    -----
    The probability that noise turns an answer is exact: one minus that of the class
    with most votes, under the noise that is drawn, over all classes. Where the teachers
    are asked only if they agree
    (:class:`~sklearn_pate.mechanisms.ConfidentGNMax`), it is that of an answer which is
    given.

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

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "A VoteMarginsDisplay is sensitive and cannot be pickled or copied; make "
            "it again where the fit was made."
        )

    def plot(self, ax: Any = None, *, bins: Any = 20, **kwargs: Any) -> Self:
        """Draw, and stamp.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.

        bins : int or sequence, default=20
            As for ``ax.hist``, of the range from 0 to 1.

        **kwargs : Any
            For ``ax.hist`` of the queries.

        Returns
        -------
        display : VoteMarginsDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = make_axes(type(self), ax)
        shares = np.asarray(self.margins) / self.n_teachers
        edges = np.histogram_bin_edges(shares, bins, range=(0, 1))
        style = {"color": COLORS[0], "label": f"{len(shares)} queries"}
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
                label=f"turned by noise, on average {np.sum(self.turned):.1f}",
            )
        if self.width is not None:
            beyond = ", more than there are" if self.width > self.n_teachers else ""
            self.line_ = ax.axvline(
                self.width / self.n_teachers,
                color="black",
                linestyle="--",
                label=f"one in {_ONE_IN} is turned at {self.width} votes{beyond}",
            )
        ax.set(
            xlabel=f"margin of the votes, as a share of {self.n_teachers} teachers",
            ylabel="queries",
            xlim=(0, 1),
        )
        ax.margins(y=0.35)  # room for the legend
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
            A :class:`~sklearn_pate.PATEClassifier`, as it was fitted, or a Pipeline
            that ends in one. One that was pickled, copied or published has no votes.

        sensitive : bool, default=False
            Has to be True: you know that votes are private, and that the picture must
            stay inside.

        ax, **kwargs : Any
            As for :meth:`plot`.

        Returns
        -------
        display : VoteMarginsDisplay
            Drawn and stamped.

        Raises
        ------
        ValueError
            If `sensitive` is not True, or the estimator has no votes.

        NotFittedError
            If the estimator is not fitted.

        ImportError
            If matplotlib is not installed.

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
        # A sum of teachers' knowledge is no vote.
        if analysis is None or not isinstance(analysis.mechanism, Mechanism):
            raise ValueError(
                f"{type(learner).__name__} has no votes in a privacy_analysis_, as it "
                "was pickled, copied or published, or holds no votes; pass a "
                "PATEClassifier right after its fit."
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
            Votes per class, without noise.

        n_teachers : int
            Number of teachers, abstaining ones included.

        sensitive : bool, default=False
            Has to be True, for made-up votes too: the picture is stamped whatever they
            are.

        mechanism : Mechanism, default=None
            With its noise set. None draws the margins alone.

        ax, **kwargs : Any
            As for :meth:`plot`.

        Returns
        -------
        display : VoteMarginsDisplay
            Drawn and stamped.

        Raises
        ------
        ValueError
            If `sensitive` is not True, these are no votes of so many teachers, or the
            mechanism has no noise set.

        ImportError
            If matplotlib is not installed.

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


def _check_sensitive(sensitive):
    if sensitive is not True:
        raise ValueError(
            f"sensitive={sensitive!r}: margins are those of private votes without "
            "noise, which no statement covers; pass sensitive=True if the picture "
            "stays inside, or draw AnswerCostDisplay, which may be published."
        )


def _check_votes(counts, n_teachers):
    counts = check_counts(counts)
    if not len(counts):
        raise ValueError("counts holds no query; pass one row a query.")
    if not isinstance(n_teachers, Integral) or n_teachers < max(counts.sum(axis=1)):
        raise ValueError(
            f"n_teachers={n_teachers!r} is not the number of teachers, as one query "
            f"got {counts.sum(axis=1).max():.0f} votes; pass how many there are."
        )
    return counts


def _law(mechanism):
    if not isinstance(mechanism, Mechanism):
        raise ValueError(
            f"mechanism={mechanism!r} is not a Mechanism; pass one with its noise set, "
            "such as GNMax(sigma=40), or None."
        )
    mechanism._check_noise()
    return mechanism._plurality()


def _width(law):
    """Return the least margin of two classes at which one answer in twenty turns."""

    def turns_more(margin):
        return log_losing(law, [[margin, 0]])[0] > -np.log(_ONE_IN)

    low, high = -1, 1
    while turns_more(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if turns_more(middle) else (low, middle)
    return high
