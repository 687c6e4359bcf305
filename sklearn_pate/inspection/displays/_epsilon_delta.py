"""Plot of epsilon against delta."""

from collections.abc import Collection, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate._estimators._delegation import last_step
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.inspection.displays._plotting import (
    check_comparable,
    line_style,
    make_axes,
    protection_note,
    require_matplotlib,
    statement_of,
)

__all__ = ["EpsilonDeltaDisplay"]

_N_POINTS = 200
# The axis is this factor wider than the stated deltas.
_AROUND = 1e4
_LARGEST_DELTA = 0.1
# Range if no delta is stated.
_USUAL_DELTAS = (1e-10, 1e-2)


class EpsilonDeltaDisplay:
    """Publishable epsilon against delta, for the same release.

    A release satisfies (epsilon, delta) at every point of its line, and its statement
    is one of them. **May be published**, like the statements. Create it by
    :meth:`from_estimator` or :meth:`from_statements`. It needs matplotlib. All
    parameters are stored as attributes.

    Parameters
    ----------
    deltas : array-like of shape (n_points,)
        Deltas in (0, 1), in increasing order.

    epsilons : dict of str to array-like of shape (n_points,)
        Epsilon at each delta, for each release; infinite where it is not known.

    stated : dict of str to tuple (epsilon, delta)
        Stated epsilon and delta of each release. A delta of 0 is drawn as an arrow at
        the left end of the logarithmic axis.

    unit, relation : str, default=None
        Unit of privacy and neighbour relation of all statements, for the axis.

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
    A line is ``privacy_spent_.epsilon_at(delta)``, the smallest epsilon that is known.
    It ends at the smallest delta that the statement resolves.

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

    def __init__(
        self,
        *,
        deltas: ArrayLike,
        epsilons: Mapping[str, ArrayLike],
        stated: Mapping[str, tuple[float, float]],
        unit: str | None = None,
        relation: str | None = None,
    ) -> None:
        self.deltas = deltas
        self.epsilons = epsilons
        self.stated = stated
        self.unit = unit
        self.relation = relation

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
        about = protection_note(self.unit, self.relation)
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
            Fitted estimator with ``privacy_spent_``, or a Pipeline that ends in one.

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
        >>> from sklearn_pate.baselines import DPLogisticRegression
        >>> from sklearn_pate.inspection import EpsilonDeltaDisplay
        >>> X, y = make_blobs(500, centers=2, random_state=0)
        >>> clf = DPLogisticRegression(data_norm=8).fit(X, y)
        >>> display = EpsilonDeltaDisplay.from_estimator(clf)
        >>> display.stated
        {'DPLogisticRegression': (1.0, 0.0)}
        >>> plt.close(display.figure_)
        """
        require_matplotlib(cls)
        name = type(last_step(estimator)).__name__
        return cls.from_statements({name: statement_of(estimator)}, ax=ax, **kwargs)

    @classmethod
    def from_statements(
        cls, statements: Mapping[str, PrivacySpent], *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw several statements, to compare them.

        Parameters
        ----------
        statements : dict of str to PrivacySpent
            Statements by name, all with one unit and relation.

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
        >>> from sklearn_pate.baselines import DPLogisticRegression
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
        check_comparable(statements.values())
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
                f"statements[{name!r}]={spent!r} is no PrivacySpent; pass the "
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
