"""What a search will charge to a ledger, before it starts."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)

from sklearn_pate._base._parameters import (
    calibrated_mechanism,
    resolve_n_queries,
    resolve_n_teachers,
)
from sklearn_pate._classifier import PATEClassifier
from sklearn_pate._estimators._delegation import last_step
from sklearn_pate._inputs._labels import read_classes
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate.accounting.ledger._entries import costs as spent
from sklearn_pate.inspection._leak_rules import looks_at_labels

__all__ = ["SearchPlan", "plan_search"]


@dataclass(frozen=True)
class SearchPlan:
    """What a search will charge, for the data holder.

    It depends on the number of rows in each split; with groups, these numbers are
    private.

    Parameters
    ----------
    n_candidates : int
        Settings that are tried.

    n_splits : int
        Fits of each.

    refit : bool
        Whether the winner is fitted once more.

    share : float
        The part of the ledger's budget that all fits take, if none was made before and
        the most costly candidate is the one that is fitted once more.

    left : float
        The part that is left now.

    ledger : str
        Its file.

    stratified : bool
        Whether the splits look at labels, which no charge covers.

    Notes
    -----
    Renyi costs of all fits add up at the orders of the ledger (Feldman and Zrnic 2021),
    see :class:`~sklearn_pate.PrivacyLedger`. The choice of the winner by scores on
    private labels is not in the cost, see :func:`~sklearn_pate.privacy_leaks`.

    Examples
    --------
    A search that this ledger would stop half-way:

    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn_pate import PATEClassifier, PrivacyLedger
    >>> from sklearn_pate.inspection import plan_search
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(3000, centers=2, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=1, delta=1e-6)
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=40),
    ...     n_queries=50,
    ...     epsilon=None,
    ...     ledger=ledger,
    ... )
    >>> grid = {"estimator__C": [0.1, 1.0]}
    >>> search = GridSearchCV(pate, grid, cv=KFold(3, shuffle=True))
    >>> cost = plan_search(search, X[:2500], y[:2500], X_public=X[2500:])
    >>> cost.n_fits, cost.fits
    (7, False)
    >>> print(f"{cost.share:.1f} times the budget")
    5.8 times the budget
    >>> folder.cleanup()
    """

    n_candidates: int
    n_splits: int
    refit: bool
    share: float
    left: float
    ledger: str
    stratified: bool

    @property
    def n_fits(self) -> int:
        """The number of charges.

        Returns
        -------
        n_fits : int
            One a fit.
        """
        return self.n_candidates * self.n_splits + self.refit

    @property
    def fits(self) -> bool:
        """Whether the budget is enough.

        Returns
        -------
        fits : bool
            If not, the search would fail half-way, and charge what it began.
        """
        return self.share <= self.left

    def __str__(self):
        refit = " and a refit" if self.refit else ""
        says = (
            f"This search will fit {self.n_fits} times ({self.n_candidates} candidates "
            f"on {self.n_splits} splits{refit}), and every new fit is charged: at most "
            f"{self.share:.2%} of the budget of {self.ledger}, where {self.left:.2%} "
            "is left"
        )
        if self.fits:
            says += "."
        else:
            says += (
                ": it would fail half-way. (Pass error_score='raise', or what is "
                "refused counts as a bad score.)"
            )
        says += (
            " Its choice between candidates looks at private labels, which no charge "
            "covers."
        )
        if self.stratified:
            says += (
                " So do its splits, where one changed label moves other rows between "
                "folds: pass cv=KFold(shuffle=True)."
            )
        return says


def plan_search(
    search: Any,
    X: Any,
    y: ArrayLike,
    *,
    X_public: Any = None,
    groups: Any = None,
) -> SearchPlan:
    """Tell what a search around a PATEClassifier will charge to its ledger.

    Nothing is fitted and nothing charged. ``print(plan_search(search, X, y,
    X_public=X_public))`` before ``search.fit`` says it in words. It is for the data
    holder: it counts rows of splits, and reads the label set where `classes` are not
    given.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV
        Around a PATEClassifier with a `ledger`, or a Pipeline that ends in one. A
        random search needs an integer `random_state`, or its candidates are not known.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows, counted only.

    y : array-like of shape (n_rows,)
        Their labels, for the label set and the splits.

    X_public : PublicData, array-like, sparse matrix or dataframe, default=None
        Public rows, counted only. None where `public_size` sets some apart.

    groups : array-like of shape (n_rows,), default=None
        For splits by group.

    Returns
    -------
    cost : SearchPlan
        Of all its fits.

    Raises
    ------
    ValueError
        If `search` is no such search, has no ledger, or cannot be priced beforehand; if
        `X_public` is missing.

    LedgerError
        If the ledger cannot be read.

    Notes
    -----
    Each fit is charged the worst case of all its queries, and Renyi costs add up at
    the orders of the ledger (Feldman and Zrnic 2021), see
    :class:`~sklearn_pate.PrivacyLedger`. A search whose choice is paid for, too, is
    :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
    >>> from sklearn_pate.inspection import plan_search
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(3000, centers=2, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=40),
    ...     n_queries=50,
    ...     epsilon=None,
    ...     ledger=ledger,
    ... )
    >>> grid = {"estimator__C": [0.1, 1.0]}
    >>> search = GridSearchCV(pate, grid, cv=KFold(3, shuffle=True))
    >>> cost = plan_search(search, X[:2500], y[:2500], X_public=PublicData(X[2500:]))
    >>> cost.n_fits, cost.fits
    (7, True)
    >>> print(f"{cost.share:.0%} of the budget")
    75% of the budget
    >>> folder.cleanup()
    """
    if not isinstance(search, (GridSearchCV, RandomizedSearchCV)):
        raise ValueError(
            f"search={search!r} is no GridSearchCV or RandomizedSearchCV: how often it "
            "fits is not known beforehand."
        )
    pate = _pate_in(search.estimator)
    if pate is None or pate.ledger is None:
        raise ValueError(
            f"search={search!r} charges to no ledger; set ledger=PrivacyLedger(...) on "
            "the PATEClassifier inside it."
        )
    if hasattr(search.cv, "__next__"):
        raise ValueError(
            f"cv={search.cv!r} can be read once only, and the search needs it; pass a "
            "list of its splits."
        )
    candidates, y = _candidates(search), np.asarray(y)
    cv = check_cv(search.cv, y, classifier=True)
    n_classes = len(read_classes(y)[0])
    sizes = [len(train) for train, _ in cv.split(np.zeros(len(y)), y, groups)]
    n_public = None if X_public is None else _n_rows(X_public)

    def costs(n_rows):
        return [
            _cost(_pate_in(one), pate.ledger, n_rows, n_public, n_classes)
            for one in candidates
        ]

    cost = np.sum([costs(n_rows) for n_rows in sizes], axis=(0, 1))
    if search.refit:
        cost = cost + np.max(costs(len(y)), axis=0)
    with pate.ledger.reading() as file:
        share, left = pate.ledger.filter.shares(cost, spent(file))
    return SearchPlan(
        n_candidates=len(candidates),
        n_splits=len(sizes),
        refit=bool(search.refit),
        share=float(share),
        left=float(left),
        ledger=str(pate.ledger.path),
        stratified=looks_at_labels(cv),
    )


def _pate_in(estimator):
    """Return the PATEClassifier at the end of pipelines, None if there is none."""
    learner = last_step(estimator)
    return learner if isinstance(learner, PATEClassifier) else None


def _candidates(search):
    """List the estimator with the parameters of each candidate."""
    if isinstance(search, GridSearchCV):
        settings = ParameterGrid(search.param_grid)
    elif isinstance(search.random_state, Integral):
        settings = ParameterSampler(
            search.param_distributions, search.n_iter, random_state=search.random_state
        )
    else:
        raise ValueError(
            f"search={search!r} will draw its candidates when it starts; set an "
            "integer random_state, so that they are known before."
        )
    return [clone(search.estimator).set_params(**one) for one in settings]


def _cost(pate, ledger, n_rows, n_public, n_classes):
    """Return what one fit costs, at each order of the ledger."""
    if pate is None or pate.ledger != ledger:
        raise ValueError(
            "A candidate of the search charges to another ledger than the others, or "
            "to none; give all of them the same."
        )
    pate._check_parameters()
    if n_public is None:
        if pate.public_size is None:
            raise ValueError(
                "X_public=None, and the PATEClassifier has no public_size; pass the "
                "X_public that the search will be given."
            )
        n_public = round(pate.public_size * n_rows)
        n_rows -= n_public
    if pate.classes is not None:
        n_classes = len(pate.classes)
    n_queries = resolve_n_queries(pate.n_queries, n_public, pate._unfitted_student())
    mechanism = calibrated_mechanism(
        pate.mechanism,
        pate.release,
        n_teachers=resolve_n_teachers(pate.n_teachers, n_rows),
        n_queries=n_queries,
        n_classes=n_classes,
        epsilon=pate.epsilon,
        delta=pate.delta,
    )
    return ledger.filter.cost(mechanism.stated_curve(n_queries, n_classes))


def _n_rows(X_public):
    X_public = X_public.X if isinstance(X_public, PublicData) else X_public
    return X_public.shape[0] if hasattr(X_public, "shape") else len(X_public)
