"""Plot of scores against epsilon."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score

from sklearn_pate.inspection.displays._epsilon_scores import (
    check_sensitivity,
    mean_scores,
    scores_of_estimators,
    scores_of_predictions,
    scores_of_search,
)
from sklearn_pate.inspection.displays._plotting import (
    log_ticks,
    make_axes,
    point_style,
    protection_note,
    require_matplotlib,
    stamp,
)

__all__ = ["PrivacyUtilityDisplay"]


class PrivacyUtilityDisplay:
    """Scores of private estimators against their publishable epsilon.

    Create it by :meth:`from_estimators`, :meth:`from_predictions` or
    :meth:`from_cv_results`. It needs matplotlib. All parameters are stored as
    attributes.

    Parameters
    ----------
    epsilons : array-like of shape (n_fits,)
        Publishable epsilon of each fit, positive and finite.

    scores : array-like of shape (n_fits,)
        Score of each fit.

    sensitive : bool
        Whether scores depend on private data that no statement covers: True if the rows
        they are computed on are private, or if `baseline` was trained on private rows.
        True stamps the plot; with False, it may be published at the privacy cost of all
        its fits together.

    baseline : float, default=None
        Score without privacy. **It is as sensitive as the rows that its model was
        trained on**.

    delta : float, default=None
        Probability mass that epsilon does not cover, for the axis.

    unit, relation : str, default=None
        Unit of privacy and neighbour relation of all fits, for the axis.

    score_name : str, default="score"
        Name of the score, for the axis.

    Attributes
    ----------
    line_ : matplotlib Line2D
        Line through the mean scores.

    errorbar_ : matplotlib ErrorbarContainer
        Standard deviations where several fits share an epsilon.

    baseline_ : matplotlib Line2D or None
        Dashed line of the baseline.

    ax_, figure_ : matplotlib Axes, Figure
        Axes and figure that the display was drawn on.

    See Also
    --------
    AnswerCostDisplay : Privacy cost against the number of queries.

    Notes
    -----
    Fits whose epsilons differ by at most one percent share a point, at the largest of
    them, so that no fit is drawn below its stated epsilon.

    To publish the plot is to publish a result of every fit in it: its privacy cost is
    the sum of their ``privacy_spent_.curve``, if no fit was chosen in view of another.

    An infinite epsilon raises an error, as it is no weak guarantee but none. The score
    of such a fit may be the `baseline`.

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

    def __init__(
        self,
        *,
        epsilons: ArrayLike,
        scores: ArrayLike,
        sensitive: bool,
        baseline: float | None = None,
        delta: float | None = None,
        unit: str | None = None,
        relation: str | None = None,
        score_name: str = "score",
    ) -> None:
        self.epsilons = epsilons
        self.scores = scores
        self.sensitive = sensitive
        self.baseline = baseline
        self.delta = delta
        self.unit = unit
        self.relation = relation
        self.score_name = score_name

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None means those of a new figure. Axes that hold another
            display of the same unit and relation get a further line.

        **kwargs : Any
            Arguments of ``ax.errorbar``; `label` is shown in the legend.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The display itself.

        Raises
        ------
        ValueError
            If the parameters are invalid.
        """
        check_sensitivity(self.sensitive, self.baseline)
        epsilons, means, deviations = mean_scores(self.epsilons, self.scores)
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
        log_ticks(ax.xaxis)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False)
        if self.sensitive:
            stamp(ax)
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
        """Score fitted private estimators, and draw.

        Parameters
        ----------
        estimators : sequence of estimators
            Fitted estimators with ``privacy_spent_`` of one unit and relation, or
            Pipelines that end in one.

        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows to score on.

        y : array-like of shape (n_rows,)
            Their labels.

        sensitive : bool
            Whether these rows are private, or `baseline` was trained on private rows.
            True stamps the plot.

        scoring : str or callable, default=None
            Argument of :func:`~sklearn.metrics.check_scoring`; None means ``score`` of
            the estimators.

        baseline : float, default=None
            Score without privacy, **as sensitive as the rows of its fit**.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If `sensitive` is neither True nor False, `baseline` is no number,
            `estimators` is no list, one states no finite epsilon, or units or relations
            differ; nothing was scored.

        NotFittedError
            If an estimator is not fitted; nothing was scored.

        Notes
        -----
        If deltas differ, the axis has the largest: a guarantee at a smaller delta holds
        at a larger one.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn_pate.baselines import DPLogisticRegression
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
        check_sensitivity(sensitive, baseline)
        fits = scores_of_estimators(estimators, X, y, scoring)
        display = cls(**vars(fits), sensitive=sensitive, baseline=baseline)
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
        """Score predictions, and draw.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Labels.

        predictions : sequence of array-like of shape (n_rows,)
            Predictions of each fit: labels, or another input of `score_func`.

        epsilons : array-like of shape (n_fits,)
            Publishable epsilon of each fit, all for one unit, relation and delta, which
            is not checked here.

        sensitive : bool
            Whether these rows are private, or `baseline` was trained on private rows.
            True stamps the plot.

        score_func : callable, default=accuracy_score
            Function of true labels and predictions that returns a number.

        baseline : float, default=None
            Score without privacy, **as sensitive as the rows of its fit**.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn display.

        Raises
        ------
        ValueError
            If `sensitive` is neither True nor False, `baseline` is no number, or there
            are not as many epsilons as predictions.

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
        check_sensitivity(sensitive, baseline)
        fits = scores_of_predictions(y_true, predictions, epsilons, score_func)
        display = cls(**vars(fits), sensitive=sensitive, baseline=baseline)
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
            Fitted, over the parameter `epsilon` of a private estimator and no other
            one; or its ``cv_results_``. In a Pipeline the parameter has a longer name,
            such as ``pate__epsilon``.

        sensitive : bool
            Whether the rows and labels that were searched on are private, or `baseline`
            was trained on private rows. True stamps the plot. Scores of a search are
            computed on rows that other fits of it learned from.

        metric : str, default=None
            One of the metrics, for a search with several.

        baseline : float, default=None
            Score without privacy, **as sensitive as the rows of its fit**.

        ax, **kwargs : Any
            Arguments of :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn display, with one point per candidate and the spread over the splits.

        Raises
        ------
        ValueError
            If `sensitive` is neither True nor False, `baseline` is no number, the
            search is not over epsilon alone, a fit of it failed, or its winner states
            no finite epsilon.

        NotFittedError
            If the search is not fitted.

        Notes
        -----
        The axis has the target epsilons, which the statement of each fit meets. No
        statement covers the search: its scores are computed without noise. Unit,
        relation and delta are those of the winner; they are unknown for a
        ``cv_results_`` alone, and with ``refit=False``.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.model_selection import GridSearchCV, KFold
        >>> from sklearn_pate.baselines import DPLogisticRegression
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
        check_sensitivity(sensitive, baseline)
        fits = scores_of_search(search, metric)
        display = cls(**vars(fits), sensitive=sensitive, baseline=baseline)
        return display.plot(ax, **kwargs)

    def _epsilon_name(self) -> str:
        delta = "" if self.delta is None else f"delta={self.delta:g}"
        notes = (delta, protection_note(self.unit, self.relation))
        about = ", ".join(filter(None, notes))
        return f"epsilon of each fit{about and f' ({about})'}"
