"""Base classes of estimators whose outcome a private classifier learns as classes."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_pate._inputs._containers import as_table, check_container
from sklearn_pate._inputs._features import in_short
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._private import PrivateClassifier, requesting_public_rows
from sklearn_pate._teachers._private_rows import DataProblems
from sklearn_pate.accounting._statement import (
    Assumption,
    PrivacySpent,
    with_label_set,
)
from sklearn_pate.exceptions import PrivacyUtilityWarning
from sklearn_pate.metrics import OutcomeMetrics
from sklearn_pate.publication import Deployment, PublishedClassifier

# Of warnings about one class among others.
_OF_RARE = "(?s).*the rarest class"


@dataclass(frozen=True)
class Outcome(ABC):
    """Edges that turn an outcome into classes. Public."""

    #: Increasing edges of the classes.
    edges: NDArray[np.float64]
    #: Where the edges are from.
    assumption: Assumption

    kind: ClassVar[str]

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @abstractmethod
    def codes(self, y: Any) -> NDArray[np.intp]:
        """Return the class of each row, -1 for an outcome that is in none."""

    @abstractmethod
    def problems(self, y: Any) -> list[str]:
        """Describe outcomes that are in no class, or that may be slips. Sensitive."""

    def to_dict(self) -> dict[str, Any]:
        """Write the outcome for privacy cards."""
        return {"kind": self.kind, "edges": self.edges.tolist()}


def read_edges(name: str, edges: Any, fewest: int, example: str) -> NDArray[np.float64]:
    """Return finite increasing numbers, or raise ValueError."""
    try:
        read = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        read = np.zeros(0)
    if (
        read.ndim != 1
        or read.size < fewest
        or not np.isfinite(read).all()
        or np.any(np.diff(read) <= 0)
    ):
        raise ValueError(
            f"{name}={edges!r} must be finite numbers that increase, such as {example}."
        )
    return read


Classifier = TypeVar("Classifier", PrivateClassifier, PublishedClassifier)


class OutcomeOfClasses(BaseEstimator, Generic[Classifier]):
    """Base class of models of an outcome around a fitted classifier of classes."""

    classifier_: Classifier
    #: Kind of the outcome, as on privacy cards.
    _kind: ClassVar[str]

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Privacy statement of the model."""
        return self.classifier_.privacy_spent_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.classifier_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names of the features."""
        return self.classifier_.feature_names_in_

    @property
    def _edges(self) -> NDArray[np.float64]:
        check_is_fitted(self, "classifier_")
        outcome = cast(dict[str, Any], self.classifier_._outcome)
        return np.array(outcome["edges"])

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        """Compute the probabilities of the classes, one column each."""
        check_is_fitted(self, "classifier_")
        return np.asarray(self.classifier_.predict_proba(X), dtype=np.float64)


class AroundClassifier(MetaEstimatorMixin, BaseEstimator):
    """Base class of estimators that fit clones of a private classifier."""

    classifier: Any

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that `fit` requests.

        Without `set_fit_request`, `fit` requests `X_public`, and `groups` if these are
        the unit of privacy.

        Returns
        -------
        routing : MetadataRequest
            Request of each method.
        """
        unit = getattr(self.classifier, "privacy_unit", None)
        return requesting_public_rows(super().get_metadata_routing(), unit)

    @property
    def _counts_rows(self) -> bool:
        return getattr(self.classifier, "_counts_rows", False)

    def _private(self) -> PrivateClassifier:
        """Return the classifier, or raise ValueError if it cannot be used."""
        classifier = self.classifier
        if not isinstance(classifier, PrivateClassifier):
            raise ValueError(
                f"classifier={in_short(classifier)} is not a private classifier; pass "
                "one, such as DPNewtonClassifier(epsilon=1), or "
                "PATEClassifier(RandomForestClassifier())."
            )
        if classifier.classes is not None:
            raise ValueError(
                f"classifier={in_short(classifier)} has classes=, but "
                f"{type(self).__name__} sets them; leave classes at None."
            )
        return classifier

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        of_classifier = get_tags(self.classifier)
        tags.input_tags = of_classifier.input_tags
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state, with an unfitted clone of the parameter."""
        state = super().__getstate__().copy()
        return state | {"classifier": clone(self.classifier, safe=False)}


class Published(BaseEstimator):
    """Base class of published models around classifiers, which are not fitted."""

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError, as a published model cannot be fitted.

        Parameters
        ----------
        X, y : object
            Not used.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"A {type(self).__name__} cannot be fitted: it has no private rows. Fit a "
            "private estimator and publish that, or pass FrozenEstimator(published) to "
            "a function that fits its estimators."
        )

    def __sklearn_clone__(self) -> Self:
        return self


class PrivateOutcome(AroundClassifier, OutcomeOfClasses[PrivateClassifier], ABC):
    """Base class of private estimators of an outcome.

    A private classifier learns the class of each row. All else is computed from its
    probabilities, at no privacy cost.
    """

    _published: ClassVar[type["PublishedOutcome"]]

    @abstractmethod
    def _read_outcome(self, y: Any, n_rows: int) -> Outcome:
        """Return the declared outcome, or one whose range is that of y."""

    @private_rows_by_position
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Fit the classifier on the class of each private row.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows, as `classifier` takes them.

        y : array-like of shape (n_rows,)
            Outcomes of the private rows: numbers, or for times a structured array of an
            event (a boolean, or 0 and 1) and then a time. `check_data` lists those that
            are dropped.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows for `classifier`.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for a `classifier` with ``privacy_unit="group"``.

        Returns
        -------
        self : estimator
            Fitted. ``publish()`` returns what may be published.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged.

        BudgetExceededError
            If the privacy cost exceeds the budget of the classifier's `ledger`. Nothing
            was released or charged.
        """
        outcome, classifier, codes = self._planned(X, y)
        self._check_usable(codes)
        with warnings.catch_warnings():
            # A rare bin or interval is a part of the outcome, and may be rare.
            warnings.filterwarnings("ignore", _OF_RARE, PrivacyUtilityWarning)
            classifier.fit(X, codes, **given_only(X_public=X_public, groups=groups))
        classifier.privacy_spent_ = with_label_set(
            classifier.privacy_spent_, outcome.assumption
        )
        classifier._outcome = outcome.to_dict()
        self.classifier_ = classifier
        return self

    @private_rows_by_position
    def plan_privacy(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> PrivacySpent:
        """State the privacy cost of a fit, without fitting.

        No noise is drawn, and the ledger is not changed.

        Parameters
        ----------
        X, y, X_public, groups : object
            As in `fit`.

        Returns
        -------
        spent : PrivacySpent
            Privacy statement, equal to ``privacy_spent_`` after a fit.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used.
        """
        outcome, classifier, codes = self._planned(X, y)
        self._check_usable(codes)
        given = given_only(X_public=X_public, groups=groups)
        spent = classifier.plan_privacy(X, codes, **given)
        return with_label_set(spent, outcome.assumption)

    def check_data(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> DataProblems:
        """List problems in private rows, for the data holder alone. **Sensitive**.

        Call this method before `fit`, which drops rows without a word. Nothing is
        drawn, charged, fitted or stored.

        Parameters
        ----------
        X, y, X_public, groups : object
            As in `fit`.

        Returns
        -------
        problems : tuple of str
            Sentences, with values and numbers of private rows: outcomes that are
            missing, outside of the edges or in the wrong unit, and all that the
            `check_data` of the classifier lists.

        Raises
        ------
        ValueError
            If containers or shapes cannot be used.
        """
        outcome, classifier, codes = self._planned(X, y)
        X = as_table(X)
        check_consistent_length(X, codes, groups)
        kept = np.flatnonzero(codes >= 0)
        X = _safe_indexing(X, kept)
        groups = None if groups is None else _safe_indexing(groups, kept)
        others = classifier._find_problems(X, codes[kept], X_public, groups, None)
        return DataProblems([*outcome.problems(y), *others])

    def publish(
        self,
        *,
        deployment: Deployment | None = None,
        metrics: OutcomeMetrics | None = None,
    ) -> Any:
        """Return the model with its privacy statement, for publication.

        Parameters
        ----------
        deployment : Deployment, default=None
            Description of data, purpose and responsibilities, repeated on the privacy
            card. No privacy statement covers this text.

        metrics : OutcomeMetrics, default=None
            Metrics of this model by :func:`~sklearn_pate.metrics.private_metrics`,
            repeated on the privacy card. The statement is then of both together.

        Returns
        -------
        published : published model
            Model with equal predictions, which `save` writes to a file.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        ValueError
            As for a private classifier.
        """
        check_is_fitted(self, "classifier_")
        if not isinstance(metrics, (OutcomeMetrics, type(None))):
            raise ValueError(
                f"metrics={metrics!r} must be OutcomeMetrics; measure this estimator "
                "by private_metrics, and not its classifier."
            )
        return self._published._around(
            self.classifier_.publish(deployment=deployment, metrics=metrics)
        )

    def _check_usable(self, codes: NDArray[np.intp]) -> None:
        """Raise ValueError if no row has an outcome."""
        if len(codes) and not np.any(codes >= 0):
            raise ValueError(
                f"No row of y has an outcome that {type(self).__name__} can read; "
                "check_data tells the data holder why."
            )

    def _planned(
        self, X: Any, y: Any
    ) -> tuple[Outcome, PrivateClassifier, NDArray[np.intp]]:
        """Return the outcome, an unfitted classifier of it, and the rows' classes."""
        classifier = self._private()
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"classifier={in_short(classifier)} has no predict_proba, which an "
                "outcome is computed from; use a student with probabilities."
            )
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None; pass the outcome of each row."
            )
        check_container("y", y)
        outcome = self._read_outcome(y, as_table(X).shape[0])
        classes = np.arange(outcome.n_classes)
        return outcome, clone(classifier).set_params(classes=classes), outcome.codes(y)


class PublishedOutcome(Published, OutcomeOfClasses[PublishedClassifier], ABC):
    """Base class of published models of an outcome."""

    @property
    def card(self) -> dict[str, Any]:
        """Privacy card: facts about the model for its users, as plain values.

        Returns
        -------
        card : dict
            Copy of the card, as of :class:`~sklearn_pate.PublishedClassifier`. Its
            "outcome" has the declared edges.
        """
        check_is_fitted(self, "classifier_")
        return self.classifier_.card

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False
    ) -> list[str]:
        """Write the model to `path`, and its privacy card to the same folder.

        Parameters
        ----------
        path : str or path-like
            Path of the model file, such as "model.skops". The card is then
            "model.json".

        overwrite : bool, default=False
            Replace existing files.

        Returns
        -------
        trusted : list of str
            Types that a receiver must trust, by ``load(path, trusted=trusted)``. The
            list is empty for most models.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileExistsError
            If a file exists and `overwrite` is False.

        ValueError
            As for :meth:`PublishedClassifier.save
            <sklearn_pate.PublishedClassifier.save>`.
        """
        check_is_fitted(self, "classifier_")
        return self.classifier_.save(path, overwrite=overwrite)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, trusted: Collection[str | type] = ()
    ) -> Self:
        """Read a model and its privacy card, and check that model and card agree.

        Parameters
        ----------
        path : str or path-like
            Path of the model file that :meth:`save` wrote, with the card beside it.

        trusted : collection of str or type, default=()
            Types that may be loaded, beside those that this package trusts.

        Returns
        -------
        published : published model
            Model with the same predictions as the saved model.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileNotFoundError
            If the model or its card is missing.

        ValueError
            As for :meth:`PublishedClassifier.load
            <sklearn_pate.PublishedClassifier.load>`, and if the file has a model of
            another kind.
        """
        return cls._around(PublishedClassifier._load(path, trusted, cls._kind))

    @classmethod
    def _around(cls, classifier: PublishedClassifier) -> Self:
        published = cls()
        published.classifier_ = classifier
        return published

    @property
    def model_privacy_spent_(self) -> PrivacySpent:
        """Part of the statement that is about the model alone."""
        return self.classifier_.model_privacy_spent_

    @property
    def metrics_(self) -> OutcomeMetrics:
        """Private metrics published with the model."""
        return cast(OutcomeMetrics, self.classifier_.metrics_)

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        shown = repr(vars(self).get("classifier_", ""))
        return f"{type(self).__name__}({shown})"


def given_only(**values: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in values.items() if value is not None}
