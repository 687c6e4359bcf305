"""Base class of all private classifiers."""

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, ClassVar, Protocol

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_pate._inputs._labels import known_classes, private_rows_by_position
from sklearn_pate._teachers._private_rows import DataProblems, find_problems
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._rdp import LARGEST_DELTA, check_delta
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import Constraint, check_parameters
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.metrics._results import ReleasedMetrics
from sklearn_pate.publication import Deployment, PublishedClassifier, publish


class StatedPlan(Protocol):
    """Plan of a fit, with its privacy statement."""

    @property
    def statement(self) -> PrivacySpent:
        """Privacy statement of the fit."""


def requesting_public_rows(
    routing: MetadataRequest, privacy_unit: str | None
) -> MetadataRequest:
    """Request public rows for `fit`, and groups if these are the unit of privacy."""
    by_group = privacy_unit == "group"
    for name, is_requested in (("X_public", True), ("groups", by_group)):
        if routing.fit.requests.get(name, is_requested) is None:
            routing.fit.add_request(param=name, alias=is_requested)
    return routing


class PrivateClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base class of classifiers that state their privacy cost before they are fitted.

    Its `fit` is a plan, an entry in the `ledger`, and a release. A subclass provides
    `_plan`, and a `fit` that ends in `_set_release`.
    """

    #: Plans a fit, with the arguments of `fit`: checks everything, calibrates the
    #: noise, states the cost. It sets ``n_features_in_`` and nothing else.
    _plan: Callable[..., StatedPlan]

    fit: Callable[..., Any]
    delta: float
    classes: ArrayLike | None
    ledger: PrivacyLedger | None
    privacy_spent_: PrivacySpent
    mechanism_: Mechanism
    data_problems_: DataProblems

    _constraints: ClassVar[dict[str, Constraint]] = {
        "ledger": Constraint.instance(
            PrivacyLedger,
            "pass PrivacyLedger(path, epsilon=3, delta=1e-6), or "
            "PrivacyLedger(path) to open one",
        )
    }

    #: Edges of the outcome whose classes are learned, None for labels.
    _outcome: dict[str, Any] | None = None

    #: The search that this fit won, where it won one.
    _selected_by: Mechanism | None = None

    #: Fitted attributes for the data holder alone, which are not pickled.
    _sensitive: ClassVar[tuple[str, ...]] = ("data_problems_",)
    #: Fitted attributes that may hold estimators, of which only clones are fitted.
    _unfitted: ClassVar[tuple[str, ...]] = ()

    @private_rows_by_position
    def plan_privacy(self, X: Any, y: Any, **fit_params: Any) -> PrivacySpent:
        """State the privacy cost of a fit, without fitting.

        No noise is drawn, and the ledger is not changed.

        Parameters
        ----------
        X, y, **fit_params : object
            As in `fit`. The privacy cost depends on no private value.

        Returns
        -------
        spent : PrivacySpent
            Privacy statement, equal to ``privacy_spent_`` after a fit.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used.

        TypeError
            If `fit` does not take these arguments.
        """
        try:
            signature(self.fit).bind(X, y, **fit_params)
        except TypeError as error:
            raise TypeError(
                f"plan_privacy takes the arguments of fit, and {error}."
            ) from None
        return clone(self)._plan(X, y, **fit_params).statement

    @private_rows_by_position
    def check_data(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> DataProblems:
        """List problems in private rows, for the data holder alone. **Sensitive**.

        Call it before `fit`, which drops such rows and cannot report them. Nothing is
        drawn, charged, fitted or stored. Problems are:

        - labels that are not in `classes`, or that look like slips;
        - rows without a group id, and groups with different labels or single rows;
        - missing and infinite values, where the classifier does not take them;
        - text in columns of numbers, and columns of another type, or of other numbers,
          than in `X_public`;
        - values outside of a declared domain or of bounds.

        Parameters
        ----------
        X, y, X_public, groups : object
            As in `fit`. After a fit, also rows for
            :func:`~sklearn_pate.metrics.private_metrics`.

        Returns
        -------
        problems : tuple of str
            Sentences, with values and numbers of private rows.

        Raises
        ------
        ValueError
            If containers or shapes cannot be used.
        """
        classes = self.classes
        if classes is None:
            classes = getattr(self, "classes_", None)
        return self._find_problems(X, y, X_public, groups, classes)

    def _find_problems(
        self, X: Any, y: Any, X_public: Any, groups: Any, classes: Any
    ) -> DataProblems:
        """List problems of private rows, with these classes. Sensitive."""
        known = known_classes(classes)
        takes_missing = get_tags(self).input_tags.allow_nan
        problems = find_problems(
            X, y, groups, known, X_public, takes_missing=takes_missing
        )
        return DataProblems([*problems, *self._problems_of_values(X)])

    def _problems_of_values(self, X: Any) -> Iterable[str]:
        """Describe values outside of what was declared. Sensitive."""
        return ()

    def publish(
        self,
        *,
        deployment: Deployment | None = None,
        metrics: ReleasedMetrics | None = None,
    ) -> PublishedClassifier:
        """Return the model with its privacy statement, for publication.

        Parameters
        ----------
        deployment : Deployment, default=None
            Description of data, purpose and responsibilities, repeated on the privacy
            card. No privacy statement covers this text.

        metrics : PrivateMetrics or OutcomeMetrics, default=None
            Metrics by :func:`~sklearn_pate.metrics.private_metrics`, repeated on the
            privacy card. The statement is then of model and metrics together.

        Returns
        -------
        published : PublishedClassifier
            Model with equal predictions, and with rounded ranges and categories of the
            public columns. `save` writes a privacy card, and a file that runs no code.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        ValueError
            If `deployment` is not a Deployment, or reveals a number of units that the
            statement protects. Also if `metrics` are of another model, have no
            guarantee, or protect another unit or relation.

        Warns
        -----
        PrivacyLeakWarning
            If the noise was seeded: there is then no guarantee.
        """
        return publish(self, deployment=deployment, metrics=metrics)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that `fit` requests.

        Without `set_fit_request`, `fit` requests `X_public`, and `groups` if these are
        the unit of privacy.

        Returns
        -------
        routing : MetadataRequest
            Request of each method.
        """
        unit = getattr(self, "privacy_unit", None)
        return requesting_public_rows(super().get_metadata_routing(), unit)

    def _check_parameters(self) -> None:
        """Raise ValueError for the first parameter that no data can be used with."""
        check_parameters(self)
        check_delta(self.delta, LARGEST_DELTA)
        if self.classes is not None:
            known_classes(self.classes)

    def _set_applicable(self, **attributes: Any) -> None:
        """Set fitted attributes, and remove those of None, which do not apply."""
        for name, value in attributes.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def _set_release(self, mechanism: Mechanism, statement: PrivacySpent) -> None:
        """Set mechanism and statement of a fit that no search has selected."""
        self.mechanism_ = mechanism
        self.privacy_spent_ = statement
        self.__dict__.pop("_selected_by", None)

    @property
    def _released_by(self) -> Mechanism:
        """Release that ``privacy_spent_`` covers."""
        return self.mechanism_ if self._selected_by is None else self._selected_by

    @abstractmethod
    def _published_model(self) -> Any:
        """Return the model that predicts class indices, and nothing else of the fit."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._statement_in_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._statement_in_html()
        return bundle

    def _statement_in_html(self) -> str:
        """Write the privacy statement for notebooks; empty before a fit."""
        stated = vars(self).get("privacy_spent_")
        return "" if stated is None else f"<p>{html.escape(repr(stated))}</p>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without sensitive attributes.

        Constructor estimators are replaced by unfitted clones, as they may have been
        fitted on private rows since.
        """
        state = super().__getstate__().copy()
        for name in self._sensitive:
            state.pop(name, None)
        for name in (*self.get_params(deep=False), *self._unfitted):
            if name in state:
                state[name] = clone(state[name], safe=False)
        return state
