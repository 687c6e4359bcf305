"""Base classes of private classifiers with public rows, and with a student."""

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import InputTags, Tags

from sklearn_pate._aggregation._aggregation import Aggregation
from sklearn_pate._aggregation._checks import check_privacy_unit, check_synthetic
from sklearn_pate._aggregation._design import is_given
from sklearn_pate._aggregation._entry import (
    ReleasePlan,
    draw_synthetic_rows,
    tables_by_name,
)
from sklearn_pate._aggregation._fit_plan import why_counts_useless, why_domain_misses
from sklearn_pate._aggregation._rows import PublicInputs, check_synthetic_rows
from sklearn_pate._estimators._class_codes import (
    StudentPredictionMixin,
    check_classifier,
    check_transformer,
)
from sklearn_pate._estimators._progress import check_verbose, phase
from sklearn_pate._inputs._features import input_tags
from sklearn_pate._inputs._known_columns import KnownColumns
from sklearn_pate._private import PrivateClassifier
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate._teachers._data_problems import NO_PROBLEMS, DataProblems
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate.accounting._calibrate import check_epsilon_is_small
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._statement import (
    CHOSEN_BLINDLY,
    OTHER_RANDOM_STATE,
    PUBLIC_REPRESENTATION,
    Assumption,
)
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts
from sklearn_pate.publication._model_file import without_caches

# Of the squared mu, where rows that are drawn from counts only have to be like others.
_SHARE_OF_COUNTS = 0.1


class PublicRowsClassifier(PrivateClassifier):
    """Base class of private classifiers that learn with the help of public rows.

    They are given, held out, or drawn from noisy counts of the private rows.
    """

    representation: Any
    epsilon: float | None
    privacy_unit: str
    public_size: float | None
    synthetic: PrivateMarginals | None
    random_state: Any

    _constraints: ClassVar[dict[str, Constraint]] = {
        "privacy_unit": Constraint(check_privacy_unit),
        "public_size": Constraint.number(0, 1, closed="neither", also=(None,)),
        "synthetic": Constraint(check_synthetic),
    }

    #: Whether neighbours add or remove a unit, and replace none.
    _add_remove: ClassVar[bool] = False

    @property
    def _counts_rows(self) -> bool:
        """Whether one more unit changes the positions of other private rows."""
        return self.privacy_unit == "group"

    def _assumptions(self, public: PublicInputs) -> tuple[Assumption, ...]:
        """List the assumptions of the fit."""
        assumptions = [*public.assumptions, CHOSEN_BLINDLY]
        # "auto" is fitted by this package.
        if is_given(self.representation):
            assumptions.append(PUBLIC_REPRESENTATION)
        if self.ledger is not None and isinstance(self.random_state, Integral):
            assumptions.append(OTHER_RANDOM_STATE)
        return tuple(assumptions)

    def _check_parameters(self) -> None:
        check_transformer(self._chosen_representation())
        if self.epsilon is not None:
            check_epsilon_is_small("epsilon", self.epsilon)
        super()._check_parameters()

    def _counts(
        self, public: PublicInputs, epsilon: float | None
    ) -> MarginalCounts | None:
        """Return the release of counts for an epsilon, None with public rows."""
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

    def _share_of_counts(
        self, n_tables: int, n_classes: int, n_units: int | None, epsilon: float | None
    ) -> float:
        """Return the share of the squared mu for counts, by public numbers."""
        return _SHARE_OF_COUNTS

    def _on_drawn_rows(
        self, plan: Any, entry: FitEntry | None
    ) -> tuple[Any, dict[Any, NDArray[np.int64]] | None]:
        """Release the counts, and plan the same fit on rows drawn from them.

        With public rows, the plan stays as it is.
        """
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
        public = replace(plan.public, X_public=X_public, synthetic=rows)
        return self._with_public_rows(plan, public), tables_by_name(marginals)

    def _with_public_rows(self, plan: Any, public: PublicInputs) -> Any:
        """Return a plan of the same release on other public rows."""
        return plan.on(public)

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
        if release.counts is None or release.statement.relation != "replace-one":
            return None
        by_class = self.synthetic is not None and self.synthetic.by_class
        return why_counts_useless(
            release.counts,
            n_rows=private.n_rows,
            n_labels=len(public.classes) if by_class else 1,
        )

    def _readers_of_public_rows(self) -> dict[str, Any]:
        """Return the estimators that get public rows, by parameter."""
        return {"representation": self._sees_rows_first()}

    def _chosen_representation(self) -> Any:
        """Return the representation that private rows get, None for the columns."""
        return self.representation

    def _sees_rows_first(self) -> Any:
        """Return the estimator that gets the private rows."""
        return self._chosen_representation()

    def _input_tags(self) -> InputTags:
        """Return the input tags of the estimator that gets the private rows."""
        return input_tags(self._sees_rows_first())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        first = self._input_tags()
        tags.input_tags.sparse = first.sparse
        tags.input_tags.allow_nan = first.allow_nan
        # On a few dozen rows, the noise for an epsilon exceeds the signal.
        tags.classifier_tags.poor_score = self.epsilon is not None
        return tags


class StudentClassifier(
    MetaEstimatorMixin, StudentPredictionMixin, PublicRowsClassifier
):
    """Base class of classifiers whose student learns from a noisy release.

    A subclass provides `_plan`, which returns an `Aggregation`, and
    `_unfitted_student`.
    """

    student: Any

    _constraints: ClassVar[dict[str, Constraint]] = {
        "student": Constraint(check_classifier),
        "verbose": Constraint(check_verbose),
    }

    # For the data holder: gaps between public rows are positions of private rows.
    _sensitive = ("privacy_analysis_", "data_problems_", "public_indices_")
    _unfitted = ("query_strategy_",)

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
            privacy_analysis_=analysis,
            public_indices_=None if private is None else private.public_indices,
        )
        self._set_release(aggregation.release.accounted, aggregation.statement)
        self.data_problems_ = data_problems
        return self

    def _published_model(self) -> BaseEstimator:
        return without_caches(self.student_)

    def _readers_of_public_rows(self) -> dict[str, Any]:
        """Return the estimators that get public rows, by parameter."""
        first = self._sees_rows_first()
        of_rows = first is self._chosen_representation()
        return {
            "representation" if of_rows else "estimator": first,
            "student": self._unfitted_student(),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        student = input_tags(self._unfitted_student())
        tags.input_tags.sparse = tags.input_tags.sparse and student.sparse
        tags.input_tags.allow_nan = tags.input_tags.allow_nan and student.allow_nan
        return tags
