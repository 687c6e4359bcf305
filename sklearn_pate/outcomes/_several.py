"""Several outcomes by one private classifier each, at one privacy cost."""

import json
import math
import os
import zipfile
from collections.abc import Collection
from dataclasses import replace
from functools import reduce
from io import BytesIO
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_pate._aggregation._entry import accounted_elsewhere, record_release
from sklearn_pate._inputs._containers import (
    as_objects,
    as_table,
    check_container,
    column_names,
    is_frame,
)
from sklearn_pate._inputs._file_content import (
    check_can_write,
    strict_json,
    write_files,
)
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._private import PrivateClassifier
from sklearn_pate._teachers._private_rows import DataProblems
from sklearn_pate.accounting._calibrate import gdp_epsilon, largest_gdp_mu
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.outcomes._outcome import (
    AroundClassifier,
    Published,
    given_only,
)
from sklearn_pate.publication import Deployment, PublishedClassifier
from sklearn_pate.publication._model_file import (
    LARGEST_CARD,
    LARGEST_MODEL,
    check_sizes,
    checked_card,
    import_skops,
    paths_of,
    read_file,
    read_member,
    type_names,
)
from sklearn_pate.publication._privacy_card import canonical_text, with_sha256

_FORMAT = {
    "format": "sklearn_pate privacy card of several outcomes",
    "format_version": 1,
}
# Relative difference of epsilon that the rounding of another platform explains.
_ROUNDING = 1e-9
# Member of a model file that has the names of the outcomes.
_NAMES = "outcomes.json"
# Most plans until the sum of the costs is within epsilon, up to rounding, and a step
# below it.
_MOST_PLANS, _ABOVE, _BELOW = 12, 1 + 1e-9, 0.999


class PredictionsOfSeveral(ClassifierMixin):
    """Predictions of several outcomes, by one classifier each."""

    estimators_: list[Any]
    output_names_: list[Any]

    @property
    def classes_(self) -> list[NDArray[Any]]:
        """Label sets of the outcomes."""
        return [one.classes_ for one in self.estimators_]

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Privacy statement of all outcomes together."""
        return sum_of(self.estimators_)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.estimators_[0].n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names of the features."""
        return self.estimators_[0].feature_names_in_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each outcome.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows, n_outcomes)
            Class labels; of dtype object if some are text and others are numbers.
        """
        check_is_fitted(self, "estimators_")
        columns = [one.predict(X) for one in self.estimators_]
        kinds = {column.dtype.kind for column in columns}
        as_they_are = None if len(kinds) == 1 else object
        return np.stack([np.asarray(one, as_they_are) for one in columns], axis=1)

    def predict_proba(self, X: Any) -> list[NDArray[np.floating]]:
        """Predict the class probabilities of each outcome.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : list of ndarray of shape (n_rows, n_classes)
            One array for each outcome, with one column for each of its classes.
        """
        check_is_fitted(self, "estimators_")
        return [one.predict_proba(X) for one in self.estimators_]

    def score(self, X: Any, y: Any) -> float:
        """Compute the share of rows with right predictions of all outcomes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        y : {array-like, dataframe} of shape (n_rows, n_outcomes)
            Labels.

        Returns
        -------
        accuracy : float
            Share of rows, as of ``sklearn.multioutput.MultiOutputClassifier``.
        """
        check_is_fitted(self, "estimators_")
        predicted, (columns, names) = self.predict(X), read_columns(y)
        check_consistent_length(predicted, columns[0])
        known = [*map(str, self.output_names_)]
        has_names = any(isinstance(one, str) for one in names)
        if len(names) != len(known) or (has_names and [*map(str, names)] != known):
            raise ValueError(
                f"y has the columns {names}, but the outcomes are {known}; pass one "
                "column for each, in this order."
            )
        right = [
            np.asarray(column) == of_outcome
            for column, of_outcome in zip(columns, predicted.T, strict=True)
        ]
        return float(np.mean(np.all(right, axis=0)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.poor_score = True
        return tags


class PublishedMultiOutput(PredictionsOfSeveral, Published):
    """Published models of several outcomes with one privacy statement.

    Created by :meth:`PrivateMultiOutput.publish`, or read by :meth:`load`. `fit` raises
    an error.

    Attributes
    ----------
    estimators_ : list of PublishedClassifier
        Model of each outcome, with the part of the privacy statement that is about this
        outcome alone.

    output_names_ : list
        Names of the outcomes, or their numbers.

    classes_ : list of ndarray of shape (n_classes,)
        Class labels of each outcome.

    privacy_spent_ : PrivacySpent
        Privacy statement of all outcomes together.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X was a dataframe with string column names.

    See Also
    --------
    PrivateMultiOutput : The private estimator.

    Examples
    --------
    >>> from sklearn_pate.outcomes import PublishedMultiOutput
    >>> model = PublishedMultiOutput.load("complications.skops")  # doctest: +SKIP
    >>> model.predict_proba(rows)[0]  # doctest: +SKIP
    """

    __module__ = "sklearn_pate.outcomes"

    @property
    def card(self) -> dict[str, Any]:
        """Privacy card: statement of all outcomes, and the card of each.

        Returns
        -------
        card : dict
            Copy of the card, for strict JSON. Without a guarantee, "epsilon" is None.
        """
        check_is_fitted(self, "estimators_")
        spent = self.privacy_spent_
        return _FORMAT | {
            "statement": spent.in_one_line(),
            "epsilon": spent.epsilon if math.isfinite(spent.epsilon) else None,
            "delta": spent.delta,
            "outcomes": [str(name) for name in self.output_names_],
            "cards": [one.card for one in self.estimators_],
        }

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False
    ) -> list[str]:
        """Write all models to `path`, and one privacy card to the same folder.

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
        check_is_fitted(self, "estimators_")
        paths, skops_io = paths_of(path), import_skops()
        check_can_write(paths, overwrite=overwrite, name="path=")
        packed = [one._packed(skops_io) for one in self.estimators_]
        content, card = BytesIO(), self.card
        with zipfile.ZipFile(content, "w") as archive:
            for place, (model, _, _) in enumerate(packed):
                archive.writestr(zipfile.ZipInfo(_member(place)), model)
            names = canonical_text(card["outcomes"])
            archive.writestr(zipfile.ZipInfo(_NAMES), names)
        card["cards"] = [json.loads(one) for _, one, _ in packed]
        models = content.getvalue()
        text = with_sha256(card, models)
        check_sizes(models, text)
        write_files({paths[0]: models, paths[1]: text})
        return sorted(set().union(*(types for _, _, types in packed)))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, trusted: Collection[str | type] = ()
    ) -> Self:
        """Read models and their card, and check that they agree.

        Parameters
        ----------
        path : str or path-like
            Path of the model file that :meth:`save` wrote, with the card beside it.

        trusted : collection of str or type, default=()
            Types that may be loaded, beside those that this package trusts.

        Returns
        -------
        published : PublishedMultiOutput
            Models with the same predictions as the saved ones.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileNotFoundError
            If the model file or its card is missing.

        ValueError
            If a file is damaged or changed, holds types that are not trusted, or states
            another cost than the sum of the outcomes' costs.
        """
        paths, skops_io = paths_of(path), import_skops()
        type_names(trusted)  # its check, before files are read
        models = read_file(paths[0], "the models", LARGEST_MODEL)
        text = read_file(paths[1], "the privacy card", LARGEST_CARD)
        try:
            card = strict_json(text)
            if {name: card.get(name) for name in _FORMAT} != _FORMAT:
                raise ValueError("it has another format")
            if json.loads(with_sha256(card, models)) != card:
                raise ValueError(f"its sha256 is not that of {paths[0].name}")
            cards, names = card["cards"], card["outcomes"]
            _check_names(names, len(cards))
            members = [*map(_member, range(len(cards))), _NAMES]
            with zipfile.ZipFile(BytesIO(models)) as archive:
                if archive.namelist() != members:
                    raise ValueError(f"{paths[0].name} has other models")
                # Of stored members, no reader unpacks more than there is.
                *read, inside = (
                    read_member(archive, one, archive.getinfo(one).compress_size)
                    for one in members
                )
            if inside != canonical_text(names):
                raise ValueError(f"{paths[0].name} has other names of outcomes")
        except Exception as error:
            raise ValueError(
                f"{paths[1]} is no card of several outcomes, or damaged ({error}). A "
                "model of one outcome is read by PublishedClassifier.load."
            ) from error
        published = cls()
        published.estimators_ = []
        for model, one in zip(read, cards, strict=True):
            checked = checked_card(model, json.dumps(one).encode(), paths)
            published.estimators_.append(
                PublishedClassifier._checked(skops_io, model, checked, paths, trusted)
            )
        published.output_names_ = names
        if not _agree(card, published.card, published.privacy_spent_):
            raise ValueError(
                f"{paths[1]} is inconsistent: its statement is not the sum of those of "
                "its outcomes."
            )
        return published

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        names = vars(self).get("output_names_", [])
        return f"{type(self).__name__}({', '.join(map(str, names))})"


class _Plan(NamedTuple):
    """Classifiers of all outcomes, their labels, and the cost of all."""

    classifiers: list[PrivateClassifier]
    columns: list[Any]
    names: list[Any]
    statement: PrivacySpent


class PrivateMultiOutput(PredictionsOfSeveral, AroundClassifier):
    """Private classification of several outcomes, at one privacy cost.

    A clone of a private classifier is fitted for each outcome, such as each of several
    complications. `epsilon` of the classifier is the privacy budget of **all** outcomes
    together.

    Parameters
    ----------
    classifier : private classifier
        Classifier of one outcome, such as :class:`~sklearn_pate.DPNewtonClassifier`.
        Its `epsilon`, `delta` and `ledger` are those of all outcomes together. Its
        `classes` stay None.

    classes : list of array-like, default=None
        All labels that may occur, one list for each outcome. A row with another label
        is dropped for this outcome alone. With None, labels are read from y, and the
        privacy statement assumes that the sets of labels are public.

    shares : array-like of shape (n_outcomes,), default=None
        Share of the squared mu (of Gaussian differential privacy) for each outcome.
        Shares are positive and sum to 1. With None, all are equal.

    Attributes
    ----------
    estimators_ : list of private classifiers
        Fitted classifier of each outcome.

    output_names_ : list
        Names of the columns of y, or their numbers.

    classes_ : list of ndarray of shape (n_classes,)
        Class labels of each outcome.

    privacy_spent_ : PrivacySpent
        Privacy statement of all outcomes together. May be published.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    See Also
    --------
    sklearn_pate.PATEClassifier : A private classifier of one outcome.

    Notes
    -----
    Without privacy, ``sklearn.multioutput.MultiOutputClassifier`` does the same. Costs
    of the outcomes add up: one person may change the label of each outcome. Gaussian
    releases of mu_1, .., mu_m are together mu-Gaussian differentially private with mu^2
    = mu_1^2 + .. + mu_m^2 (Dong, Roth, Su 2022, "Gaussian differential privacy",
    Corollary 3.3). The noise on one sum over all outcomes would be the same. Where the
    cost of a classifier has no mu, epsilons are lowered until the statement of the sum
    is within `epsilon`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import DPNewtonClassifier, PublicData
    >>> from sklearn_pate.outcomes import PrivateMultiOutput
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 3))
    >>> y = (X[:, :2] + rng.normal(size=(6000, 2)) > 0).astype(int)
    >>> model = PrivateMultiOutput(
    ...     DPNewtonClassifier(epsilon=1.0), classes=[[0, 1], [0, 1]]
    ... )
    >>> model = model.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:]))
    >>> model.predict(X[:3]).shape
    (3, 2)
    >>> bool(model.privacy_spent_.epsilon <= 1)
    True
    """

    def __init__(
        self,
        classifier: Any,
        *,
        classes: list[ArrayLike] | None = None,
        shares: ArrayLike | None = None,
    ) -> None:
        self.classifier = classifier
        self.classes = classes
        self.shares = shares

    @private_rows_by_position
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Fit a classifier for each outcome, after one entry in the ledger.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows, as `classifier` takes them.

        y : {array-like, dataframe} of shape (n_rows, n_outcomes)
            Labels of the private rows, one column for each outcome.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows for `classifier`.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for a `classifier` with ``privacy_unit="group"``.

        Returns
        -------
        self : PrivateMultiOutput
            Fitted. ``publish()`` returns what may be published.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged,
            unless a fit of one outcome failed: the cost of all outcomes was charged.

        BudgetExceededError, LedgerError
            If the cost of all outcomes together exceeds the budget of the `ledger`, or
            if its file cannot be used. Nothing was released or charged.
        """
        given = given_only(X_public=X_public, groups=groups)
        plan = self._plan(X, y, given)
        record_release(self.classifier.ledger, plan.statement, (X, plan.columns))
        # The privacy is spent on these lines: each fit draws its noise.
        with accounted_elsewhere():
            fitted = [
                classifier.fit(X, column, **given)
                for classifier, column in zip(
                    plan.classifiers, plan.columns, strict=True
                )
            ]
        self.estimators_, self.output_names_ = fitted, plan.names
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
        given = given_only(X_public=X_public, groups=groups)
        return self._plan(X, y, given).statement

    def check_data(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> DataProblems:
        """List problems in private rows, for the data holder alone. **Sensitive**.

        Parameters
        ----------
        X, y, X_public, groups : object
            As in `fit`.

        Returns
        -------
        problems : tuple of str
            Sentences of the classifier's `check_data`, each with the name of the
            outcome unless all outcomes have it.

        Raises
        ------
        ValueError
            If containers or shapes cannot be used.
        """
        columns, names = read_columns(y)
        of_all = [
            classifier.check_data(
                X, column, **given_only(X_public=X_public, groups=groups)
            )
            for classifier, column in zip(
                self._classifiers(len(columns)), columns, strict=True
            )
        ]
        shared = [one for one in of_all[0] if all(one in other for other in of_all)]
        return DataProblems(
            [
                *shared,
                *(
                    f"{name}: {one}"
                    for name, problems in zip(names, of_all, strict=True)
                    for one in problems
                    if one not in shared
                ),
            ]
        )

    def publish(self, *, deployment: Deployment | None = None) -> PublishedMultiOutput:
        """Return the models with one privacy statement, for publication.

        Parameters
        ----------
        deployment : Deployment, default=None
            Description of data, purpose and responsibilities, repeated on the privacy
            cards. No privacy statement covers this text.

        Returns
        -------
        published : PublishedMultiOutput
            Models with equal predictions, which `save` writes to one file.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "estimators_")
        published = PublishedMultiOutput()
        published.estimators_ = [
            one.publish(deployment=deployment) for one in self.estimators_
        ]
        published.output_names_ = [str(name) for name in self.output_names_]
        return published

    def _classifiers(self, n_outcomes: int) -> list[PrivateClassifier]:
        """Return an unfitted classifier for each outcome, without a ledger."""
        classifier = self._private()
        classes = n_outcomes * [None] if self.classes is None else self.classes
        if not isinstance(classes, (list, tuple)) or len(classes) != n_outcomes:
            raise ValueError(
                f"classes={self.classes!r} must list the labels of each outcome, "
                f"and y has {counted(n_outcomes, 'column')}."
            )
        return [
            clone(classifier).set_params(classes=labels, ledger=None)
            for labels in classes
        ]

    def _plan(self, X: Any, y: Any, given: dict[str, Any]) -> _Plan:
        """Divide epsilon among the outcomes, and state the cost of all."""
        columns, names = read_columns(y)
        check_consistent_length(as_table(X), columns[0])
        classifiers, shares = (
            self._classifiers(len(columns)),
            self._shares(len(columns)),
        )
        target, delta = self.classifier.epsilon, self.classifier.delta
        mu = None if target is None else largest_gdp_mu(target, delta)
        for _ in range(_MOST_PLANS):
            for one, share in zip(classifiers, shares, strict=True):
                if mu is not None:
                    one.set_params(epsilon=gdp_epsilon(mu * math.sqrt(share), delta))
            planned = [
                one.plan_privacy(X, column, **given)
                for one, column in zip(classifiers, columns, strict=True)
            ]
            statement = reduce(add, planned)
            is_seeded = math.isinf(statement.epsilon)
            if mu is None or is_seeded or statement.epsilon <= target * _ABOVE:
                return _Plan(classifiers, columns, names, statement)
            mu *= _BELOW * target / statement.epsilon
        raise ValueError(
            f"epsilon={target!r} cannot be divided among "
            f"{counted(len(columns), 'outcome')}; use a larger epsilon, or fewer "
            "outcomes."
        )

    def _shares(self, n_outcomes: int) -> NDArray[np.float64]:
        if self.shares is None:
            return np.full(n_outcomes, 1 / n_outcomes)
        try:
            shares = np.asarray(self.shares, dtype=np.float64)
        except (TypeError, ValueError):
            shares = np.zeros(0)
        if self.classifier.epsilon is None:
            raise ValueError(
                f"shares={self.shares!r} divide epsilon, but epsilon of the classifier "
                "is None; set it, or leave shares out."
            )
        if (
            shares.shape != (n_outcomes,)
            or not np.all(shares > 0)
            or not math.isclose(shares.sum(), 1)
        ):
            raise ValueError(
                f"shares={self.shares!r} must be positive numbers that sum to 1, one "
                f"for each of {counted(n_outcomes, 'outcome')}."
            )
        return shares


def sum_of(estimators: list[Any]) -> PrivacySpent:
    """Add the statements of several fits."""
    return reduce(add, (one.privacy_spent_ for one in estimators))


def read_columns(y: Any) -> tuple[list[Any], list[Any]]:
    """Return the columns of labels, and their names or numbers."""
    if y is None:
        raise ValueError(
            "PrivateMultiOutput requires y to be passed, but the target y is None; "
            "pass a column of labels for each outcome."
        )
    check_container("y", y)
    table = y if is_frame(y) or hasattr(y, "dtype") else as_objects(y)
    shape = np.shape(table)
    if len(shape) != 2 or not shape[1]:
        raise ValueError(
            f"y has shape {shape}, but several outcomes are columns, such as y = "
            "frame[['sepsis', 'delirium']]; fit the classifier itself for one outcome."
        )
    columns = [_safe_indexing(table, place, axis=1) for place in range(shape[1])]
    if table is not y:  # a list has no type that all columns share
        columns = [column.tolist() for column in columns]
    return columns, column_names(table) or [*range(shape[1])]


def _member(place: int) -> str:
    return f"{place}.skops"


def _check_names(names: Any, n_outcomes: int) -> None:
    """Raise ValueError unless names of outcomes are distinct printable texts."""
    if (
        not isinstance(names, list)
        or not 0 < len(names) == n_outcomes == len({*map(str, names)})
        or not all(isinstance(one, str) and one.isprintable() for one in names)
        or not all(map(str.strip, names))
    ):
        raise ValueError("its names of outcomes are not distinct texts")


def _agree(
    stated: dict[str, Any], derived: dict[str, Any], spent: PrivacySpent
) -> bool:
    """Check the fields of a card but for the cards in it; epsilon may be rounded."""
    epsilon = stated["epsilon"]
    if isinstance(epsilon, float) and math.isclose(
        epsilon, spent.epsilon, rel_tol=_ROUNDING
    ):
        text = replace(spent, epsilon=epsilon).in_one_line()
        derived = derived | {"epsilon": epsilon, "statement": text}
    of_files = {name: stated[name] for name in ("cards", "sha256")}
    return stated == derived | of_files
