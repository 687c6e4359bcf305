"""Private naive Bayes from noisy counts of each column by class."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._aggregation._checks import check_privacy_unit, check_unit
from sklearn_pate._aggregation._entry import (
    ReleasePlan,
    counted_rows,
    record_release,
    tables_by_name,
)
from sklearn_pate._aggregation._outlook import why_domain_misses
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._estimators._predictions import (
    DelegatedPredictionMixin,
    ProbabilityScoresMixin,
)
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._known_columns import KnownColumns
from sklearn_pate._inputs._labels import known_classes, private_rows_by_position
from sklearn_pate._private import PrivateClassifier
from sklearn_pate._synthetic._domain import Domain, cell_of
from sklearn_pate._synthetic._marginals import (
    Marginals,
    PrivateMarginals,
    count_cells,
    summed,
)
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate.accounting._calibrate import (
    check_delta_is_small,
    check_epsilon_is_small,
)
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import (
    CHOSEN_BLINDLY,
    COLUMNS,
    DOMAIN_DECLARED,
    PrivacySpent,
)
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts


class NaiveBayes(ProbabilityScoresMixin, ClassifierMixin, BaseEstimator):
    """Naive Bayes from tables of counts. It predicts class indices, for any values."""

    __module__ = "sklearn_pate.stored_types"  # its name in files

    _reads_any_value = True
    _keeps_rows_apart = ()

    @classmethod
    def of_tables(cls, marginals: Marginals) -> Self:
        """Return a fitted classifier."""
        model = cls()
        domain, tables = marginals.domain, marginals.by_total
        model.columns_ = domain.counted
        model.cells_ = [domain.cells[column] for column in domain.counted]
        odds = tables.log_odds()
        temperature, model.intercepts_ = tables.calibrated(odds)
        model.log_odds_ = [temperature * one for one in odds]
        model.classes_ = np.arange(marginals.n_classes)
        return model

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute class probabilities; a value without a cell does not count."""
        cells = [
            cell_of(X, column, one)
            for column, one in zip(self.columns_, self.cells_, strict=True)
        ]
        return softmax(self.intercepts_ + summed(self.log_odds_, cells), axis=1)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices."""
        return self.predict_proba(X).argmax(axis=1)


@dataclass(frozen=True)
class _CountsPlan:
    """Plan of a fit: private rows, domain, release and statement."""

    private: PrivateRows
    domain: Domain
    mechanism: MarginalCounts
    statement: PrivacySpent


class DPNaiveBayesClassifier(DelegatedPredictionMixin, PrivateClassifier):
    """Naive Bayes computed from noisy counts of each column's values in each class.

    The counts are released once, with Gaussian noise. Counts and classifier may be
    published, with ``privacy_spent_`` as privacy statement. Columns may be text,
    categories or numbers, with missing values.

    Parameters
    ----------
    domain : dict or None, default=None
        Possible values of each column, written **without a look at private rows**, as
        for :class:`~sklearn_pate.PrivateMarginals`. A value that is not declared is
        ignored, in `fit` and in `predict`.

    n_bins : "auto" or int, default="auto"
        Number of bins of equal width between the bounds of a column. "auto" is between
        4 and 32, with more bins for more rows per class and for less noise. With groups
        as the unit of privacy, "auto" is 8.

    epsilon : float, default=1.0
        Publishable epsilon of this fit, to which the noise is calibrated.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy: one row, or all rows of one group, such as a patient, given as
        ``fit(..., groups=patient_id)``. Only one row of each group, chosen by a keyed
        hash of the group id, is counted. With "row", a person with several rows is
        **not** protected as a whole.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. A row with another label is not counted. With None,
        the labels are read from y; the privacy statement then assumes that the set of
        labels is public.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`. Every fit is a new release.

    random_state : int, RandomState instance or None, default=None
        Seed of the choice of one row of each group. The seed may be public.

    Attributes
    ----------
    student_ : NaiveBayes
        The classifier of class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    marginals_ : dict
        Noisy counts of each column, as an array of shape (n_classes, n_cells). May be
        published.

    privacy_spent_ : PrivacySpent
        The privacy statement. May be published.

    mechanism_ : MarginalCounts
        The mechanism that released the counts, with the scale of the noise.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    See Also
    --------
    sklearn_pate.PrivateMarginals : Rows drawn from noisy counts, for PATE.

    Notes
    -----
    Each of the D columns has one table of counts. Each unit of privacy counts in at
    most one cell of each table. The counts of neighbouring data sets thus differ by at
    most sqrt(2 D) in the Euclidean norm. The release is mu-Gaussian differentially
    private with mu = sqrt(2 D) / sqrt(sigma^2 - 2.25), and the stated epsilon is exact
    (Balle and Wang 2018). The proof is Lemma 8 on the page :doc:`/proofs/counts`. Noisy
    tables are replaced by the nearest tables without negative counts. The total of a
    class is the mean of its totals in all columns. Half of the noise scale is added to
    each count.

    Naive Bayes assumes that columns are independent, given the class. If columns depend
    on each other, the ranking of rows changes little, but probabilities would be too
    near to 0 and 1. The sum of the columns' log-odds is therefore multiplied by a
    factor below 1, at no privacy cost. The factor follows from the noisy counts, the
    noise scale and the number of columns, for a medium dependence. Vaidya, Shafiq,
    Basu, Hong (2013), "Differentially private naive Bayes classification", add Laplace
    noise to the counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.learners import DPNaiveBayesClassifier
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(0, 10, size=(5000, 3))
    >>> y = (X[:, 0] + X[:, 1] > 10).astype(int)
    >>> clf = DPNaiveBayesClassifier((0, 10), classes=[0, 1]).fit(X, y)
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    _keeps_rows_apart = ("student_",)

    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_bins": Constraint.count(2, also=("auto",)),
        "epsilon": Constraint(check_epsilon_is_small),
        "privacy_unit": Constraint(check_privacy_unit),
    }

    def __init__(
        self,
        domain: Any = None,
        *,
        n_bins: int | Literal["auto"] = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: Any = None,
    ) -> None:
        self.domain = domain
        self.n_bins = n_bins
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    @private_rows_by_position
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Compute noisy counts of the private rows.

        Every call of `fit` is a new release with its own privacy cost.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Private rows. No value of a private row makes a fit fail.

        y : array-like of shape (n_rows,)
            Labels of the private rows. `check_data` lists labels that are no class.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for ``privacy_unit="group"``. Pass one row a group if
            the outcome decides how many rows a group has: see :doc:`/guide/data`.

        Returns
        -------
        self : DPNaiveBayesClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged.

        BudgetExceededError
            If the privacy cost exceeds the budget of the `ledger`. Nothing was released
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written. Nothing was released.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded, or `delta` or `epsilon` is too large for privacy.
            Also for a second fit of the same rows without a ledger.

        PrivacyUtilityWarning
            If the noisy counts show that the domain misses values of the private rows.
        """
        plan = self._plan(X, y, groups=groups)
        private = plan.private
        dropped = self._find_problems(X, y, None, groups, self.classes)
        rows, codes = self._counted_rows(private)
        exact = count_cells(
            plan.domain, rows, codes, len(plan.private.classes), by_class=True
        )
        noise = NoiseSource().as_stated(plan.statement.assumptions)
        record_release(self.ledger, plan.statement, private.content())
        # The privacy is spent on the next line: the noise is drawn.
        marginals = Marginals(
            plan.domain,
            len(plan.private.classes),
            True,
            plan.mechanism.release(exact, noise),
            private.n_rows if self.privacy_unit == "row" else None,
            plan.mechanism.sigma,
        )
        warn_user(why_domain_misses(marginals), PrivacyUtilityWarning)
        self.student_ = NaiveBayes.of_tables(marginals)
        self.classes_ = plan.private.classes
        # Each value is in ten of these rows.
        n_rows = 10 * max(one.n_cells for one in plan.domain.cells)
        self._known_columns = KnownColumns.of(plan.domain.uniform(n_rows, seed=0))
        self.marginals_ = tables_by_name(marginals)
        self._set_release(plan.mechanism, plan.statement)
        self.data_problems_ = dropped
        return self

    def _problems_of_values(self, X: Any) -> Iterable[str]:
        return PrivateMarginals(self.domain)._problems(X)

    def _counted_rows(self, private: PrivateRows) -> tuple[Table, NDArray[np.intp]]:
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        return counted_rows(private, seed)

    def _plan(self, X: Any, y: Any, *, groups: Any = None) -> _CountsPlan:
        """Check parameters and data, calibrate the noise, and state the cost."""
        self._check_parameters()
        check_unit(self.privacy_unit, groups)
        X = check_features(self, X, reset=True, private=True)
        classes = known_classes(self.classes)
        private = PrivateRows.read(X, y, groups, classes=classes)
        if self.privacy_unit == "row":  # else, this number is protected
            check_delta_is_small(self.delta, private.n_rows, "rows")
        n_classes = len(private.classes)

        def counts(n_tables: int, epsilon: float = self.epsilon) -> MarginalCounts:
            return MarginalCounts(n_tables=n_tables).for_share(1.0, epsilon, self.delta)

        n_units = private.n_rows if self.privacy_unit == "row" else None
        domain = PrivateMarginals(self.domain, n_bins=self.n_bins)._read(
            X, n_units, n_classes, counts
        )
        private.check_usable()

        release = ReleasePlan(
            prepare=lambda epsilon, before: counts(len(domain.counted), epsilon),
            target=self.epsilon,
            delta=self.delta,
            unit=self.privacy_unit,
            assumptions=(private.label_set, DOMAIN_DECLARED, COLUMNS, CHOSEN_BLINDLY),
            n_values=n_classes,
            n_steps=1,
        )
        return _CountsPlan(private, domain, release.mechanism, release.statement)

    def _check_before_predicting(self, X: Any) -> Any:
        check_is_fitted(self, "student_")
        return check_features(self, X, reset=False, private=True)

    def _unfitted_inner(self) -> NaiveBayes:
        return NaiveBayes()

    def _published_model(self) -> NaiveBayes:
        return deepcopy(self.student_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        # With a few dozen rows, the noise dominates.
        tags.classifier_tags.poor_score = True
        return tags
