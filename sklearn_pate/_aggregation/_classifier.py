"""Base class of private classifiers with public rows."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import InputTags, Tags

from sklearn_pate._aggregation._aggregation import Aggregation, is_for_all_rows
from sklearn_pate._aggregation._checks import check_privacy_unit, check_synthetic
from sklearn_pate._aggregation._codes import (
    SHARE_OF_CODES,
    problems_of_codes,
    read_codes,
)
from sklearn_pate._aggregation._design import is_given
from sklearn_pate._aggregation._entry import (
    ReleasePlan,
    count_codes,
    draw_synthetic_rows,
    tables_by_name,
)
from sklearn_pate._aggregation._outlook import (
    why_codes_tell_nothing,
    why_counts_useless,
    why_domain_misses,
)
from sklearn_pate._aggregation._rows import PublicInputs, check_synthetic_rows
from sklearn_pate._estimators._kinds import check_transformer
from sklearn_pate._estimators._predictions import DelegatedPredictionMixin
from sklearn_pate._estimators._progress import check_verbose, phase
from sklearn_pate._inputs._features import in_short, input_tags
from sklearn_pate._inputs._known_columns import KnownColumns
from sklearn_pate._private import PrivateClassifier
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate._teachers._private_rows import NO_PROBLEMS, DataProblems, PrivateRows
from sklearn_pate.accounting._calibrate import check_epsilon_is_small
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._statement import (
    CHOSEN_BLINDLY,
    OTHER_RANDOM_STATE,
    PUBLIC_REPRESENTATION,
    ROW_ALONE,
    Assumption,
)
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms._noisy_sum import CodeCounts, MarginalCounts
from sklearn_pate.publication._model_file import without_caches
from sklearn_pate.students import TableRepresentation
from sklearn_pate.students._representations import CodeLogOdds

# Of the squared mu, where rows that are drawn from counts only have to be like others.
_SHARE_OF_COUNTS = 0.1


class PublicRowsClassifier(DelegatedPredictionMixin, PrivateClassifier):
    """Base class of private classifiers that learn with the help of public rows.

    They are given, held out, or drawn from noisy counts of the private rows. A subclass
    provides `_plan`, `_readers` and `_unfitted_inner`.
    """

    #: Returns the estimators that read public rows, by parameter. The first of them
    #: gets the private rows, too.
    _readers: Callable[[], dict[str, Any]]

    representation: Any
    epsilon: float | None
    privacy_unit: str
    public_size: float | None
    synthetic: PrivateMarginals | None
    #: Columns of codes; a subclass with the parameter sets it.
    codes: Any = None
    random_state: Any

    _constraints: ClassVar[dict[str, Constraint]] = {
        "privacy_unit": Constraint(check_privacy_unit),
        "public_size": Constraint.number(0, 1, closed="neither", also=(None,)),
        "synthetic": Constraint(check_synthetic),
        "verbose": Constraint(check_verbose),
    }

    # For the data holder: gaps between public rows are positions of private rows.
    _sensitive = ("privacy_analysis_", "data_problems_", "public_indices_")
    _unfitted = ("query_strategy_",)

    #: Whether neighbours add or remove a unit, and replace none.
    _add_remove: ClassVar[bool] = False

    @property
    def _counts_rows(self) -> bool:
        """Whether one more unit changes the positions of other private rows."""
        return self.privacy_unit == "group"

    def _assumptions(
        self, public: PublicInputs, *, of_rows: bool = False
    ) -> tuple[Assumption, ...]:
        """List the assumptions of the fit.

        `of_rows` is whether each private row or group contributes by itself, after the
        representation.
        """
        assumptions = [*public.assumptions, CHOSEN_BLINDLY]
        # "auto" is fitted by this package.
        if is_given(self.representation):
            assumptions.append(PUBLIC_REPRESENTATION)
            if of_rows and not is_for_all_rows(self.representation, by_group=False):
                assumptions.append(ROW_ALONE)
        if self.ledger is not None and isinstance(self.random_state, Integral):
            assumptions.append(OTHER_RANDOM_STATE)
        return tuple(assumptions)

    def _check_parameters(self) -> None:
        if is_given(self.representation):
            check_transformer(self.representation)
        if self.epsilon is not None:
            check_epsilon_is_small("epsilon", self.epsilon)
        super()._check_parameters()

    def _counts(
        self, public: PublicInputs, epsilon: float | None
    ) -> MarginalCounts | None:
        """Return the release of counts for an epsilon; None without any."""
        if public.coded is not None:
            return self._counts_of_codes(len(public.coded.codes), epsilon)
        if public.domain is None or self.synthetic is None:
            return None
        return self._counts_of(
            len(public.domain.counted),
            n_classes=len(public.classes),
            n_units=public.n_units,
            epsilon=epsilon,
        )

    def _counts_of(
        self,
        n_tables: int,
        *,
        n_classes: int,
        n_units: int | None,
        epsilon: float | None,
    ) -> MarginalCounts:
        """Return the release of counts of a number of tables."""
        synthetic = cast(PrivateMarginals, self.synthetic)
        return synthetic._mechanism(
            n_tables,
            epsilon=epsilon,
            delta=self.delta,
            add_remove=self._add_remove,
            share=self._share_of_counts(n_tables, n_classes, n_units, epsilon),
        )

    def _counts_of_codes(self, n_columns: int, epsilon: float | None) -> MarginalCounts:
        """Return the release of counts of the codes of a number of columns."""
        counts = CodeCounts(n_tables=n_columns, add_remove=self._add_remove)
        return counts.for_share(SHARE_OF_CODES, cast(float, epsilon), self.delta)

    def _with_codes(self, public: PublicInputs, representation: Any) -> PublicInputs:
        """Add the columns of codes that are counted for a representation of tables."""
        codes, given = self.codes, isinstance(self.codes, dict)
        if codes is None:
            return public
        why = None
        if self.synthetic is not None:
            why = "synthetic counts all columns; declare the codes in its domain"
        elif self.epsilon is None:
            why = "epsilon=None leaves the noise of their counts open; set epsilon"
        elif not isinstance(representation, TableRepresentation):
            why = (
                "their log-odds are features of a TableRepresentation; set "
                "representation=TableRepresentation()"
            )
        elif sp.issparse(public.X_public):
            why = "X is sparse; pass a dense table"
        if why is not None:
            if given:
                raise ValueError(f"codes={in_short(codes)} cannot be counted: {why}.")
            return public
        coded = read_codes(
            codes,
            public.X_public,
            n_units=public.n_units,
            n_classes=len(public.classes),
            sigma_of=lambda n: self._counts_of_codes(n, self.epsilon).sigma,
        )
        return replace(public, coded=coded)

    def _share_of_counts(
        self, n_tables: int, n_classes: int, n_units: int | None, epsilon: float | None
    ) -> float:
        """Return the share of the squared mu for counts, by public numbers."""
        return _SHARE_OF_COUNTS

    def _after_counts(
        self, plan: Any, entry: FitEntry | None
    ) -> tuple[Any, dict[Any, NDArray[np.int64]] | None]:
        """Release the counts, and plan the same fit on rows or features from them.

        Without counts, the plan stays as it is.
        """
        if plan.public.coded is not None:
            with phase("counting codes"):
                public, tables = count_codes(
                    plan.public, plan.private, plan.release, entry, plan.seeds.synthetic
                )
            log_odds = cast(CodeLogOdds, public.log_odds).log_odds_
            why = why_codes_tell_nothing([*tables], log_odds)
            warn_user(why, PrivacyUtilityWarning)
            return self._with_public_rows(plan, public), tables
        domain = plan.public.domain
        if domain is None or self.synthetic is None:
            return plan, None
        with phase("drawing synthetic rows"):
            marginals, rows = draw_synthetic_rows(
                self.synthetic,
                plan.private,
                plan.public.classes,
                domain,
                plan.release,
                entry,
                plan.seeds.synthetic,
                equal_classes=plan.equal_classes,
            )
        warn_user(why_domain_misses(marginals), PrivacyUtilityWarning)
        X_public = check_synthetic_rows(self, rows.X)
        shares = marginals.class_shares()
        public = replace(
            plan.public, X_public=X_public, synthetic=rows, class_shares=shares
        )
        return self._with_public_rows(plan, public), tables_by_name(marginals)

    def _with_public_rows(self, plan: Any, public: PublicInputs) -> Any:
        """Return a plan of the same release on other public rows."""
        return plan.on(public)

    def _find_problems(
        self, X: Any, y: Any, X_public: Any, groups: Any, classes: Any
    ) -> DataProblems:
        problems = super()._find_problems(X, y, X_public, groups, classes)
        if not isinstance(self.codes, dict):
            return problems
        return DataProblems([*problems, *problems_of_codes(self.codes, X, X_public)])

    def _problems_of_values(self, X: Any) -> Iterable[str]:
        return () if self.synthetic is None else self.synthetic._problems(X)

    def _warn_of_counts(
        self, private: PrivateRows, public: PublicInputs, release: ReleasePlan
    ) -> None:
        """Warn if the noise hides the counts, where the number of rows is public."""
        why = self._why_counts_useless(private, public, release)
        warn_user(why, PrivacyUtilityWarning)

    def _why_counts_useless(
        self, private: PrivateRows, public: PublicInputs, release: ReleasePlan
    ) -> str | None:
        """Describe why the noise hides the counts; None if not, or if n is secret."""
        if self.synthetic is None or release.statement.relation != "replace-one":
            return None
        return why_counts_useless(
            cast(MarginalCounts, release.counts),
            n_rows=private.n_rows,
            n_labels=len(public.classes) if self.synthetic.by_class else 1,
        )

    def _set_fitted(
        self,
        aggregation: Aggregation,
        released: Any,
        student: BaseEstimator,
        analysis: PrivacyAnalysis | None,
        marginals: dict[Any, NDArray[np.int64]] | None = None,
        data_problems: DataProblems = NO_PROBLEMS,
    ) -> Self:
        """Set the fitted attributes, all at once."""
        private = aggregation.private
        self.student_ = student
        self.classes_ = aggregation.public.classes
        self._known_columns = KnownColumns.of(aggregation.public.X_public, student)
        self._set_applicable(
            **aggregation.attributes(released),
            marginals_=marginals,
            codes_=aggregation.public.counted_codes,
            privacy_analysis_=analysis,
            public_indices_=None if private is None else private.public_indices,
        )
        self._set_release(aggregation.release.accounted, aggregation.statement)
        self.data_problems_ = data_problems
        return self

    def _published_model(self) -> BaseEstimator:
        return without_caches(self.student_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Without a representation, distances take arrays of finite numbers.
        of_readers = [
            InputTags() if one is None else input_tags(one)
            for one in self._readers().values()
        ]
        tags.input_tags.sparse = all(one.sparse for one in of_readers)
        tags.input_tags.allow_nan = all(one.allow_nan for one in of_readers)
        # On a few dozen rows, the noise for an epsilon exceeds the signal.
        tags.classifier_tags.poor_score = self.epsilon is not None
        return tags


def readers_of_teachers(
    representation: Any, teacher: Any, student: Any
) -> dict[str, Any]:
    """Return the estimators that read public rows, by parameter.

    Teachers get the rows that the representation has transformed.
    """
    first: dict[str, Any] = {"representation": representation}
    if representation is None:
        first = {"estimator": teacher}
    return first | {"student": student}
