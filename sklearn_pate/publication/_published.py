"""PublishedClassifier: a model with its statement, for publication."""

import html
import os
from collections.abc import Collection
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._estimators._class_codes import RelabeledClassifier
from sklearn_pate._estimators._fingerprints import model_fingerprint
from sklearn_pate._estimators._kinds import is_of
from sklearn_pate._estimators._predictions import DelegatedPredictionMixin
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._file_content import check_can_write, write_files
from sklearn_pate._inputs._known_columns import KnownColumns
from sklearn_pate._inputs._labels import plain_label
from sklearn_pate._teachers._private_rows import DataProblems, find_problems
from sklearn_pate.accounting._statement import PrivacySpent, with_metrics
from sklearn_pate.accounting._value_checks import counted, printable
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.metrics._results import ReleasedMetrics
from sklearn_pate.publication._deployment import Deployment, checked_deployment
from sklearn_pate.publication._model_file import (
    add_card,
    check_can_unpack,
    check_sizes,
    import_skops,
    paths_of,
    reachable,
    read_pair,
    restored,
    taken_apart,
    type_names,
    unpack,
    untrusted_types,
    versions_of,
    with_plain_members,
)
from sklearn_pate.publication._privacy_card import (
    FORMAT,
    FORMAT_VERSION,
    canonical_text,
    check_card,
    check_metrics,
    checked_statements,
    classes_to_trust,
    full_name,
    kind_of_outcome,
    release_fields,
    with_sha256,
)
from sklearn_pate.stored_types import OF_MODELS
from sklearn_pate.students import ReweightedClassifier

#: Classes of students that cards and reports name after the classifier inside.
WRAPPERS = (RelabeledClassifier, ReweightedClassifier)
#: Published models by the kind of their outcome, None for classes.
LOADERS = {
    None: "PublishedClassifier",
    "number": "PublishedRegressor",
    "time": "PublishedSurvival",
}


class PublishedClassifier(DelegatedPredictionMixin, ClassifierMixin, BaseEstimator):
    """Published model with its privacy statement.

    Created by ``publish()`` of a private classifier, such as
    :meth:`PATEClassifier.publish`, or read by :meth:`load`. The model predicts like the
    private classifier, but contains no parameter of the private classifier: no teacher,
    no ledger, and no index of a public row. The model may be published with its
    statement, saved by :meth:`save`, or pickled.

    `fit` raises an error, and ``clone`` returns the model itself. To a meta-estimator
    that would fit the model, pass the model in a ``FrozenEstimator``.

    Attributes
    ----------
    student_ : classifier
        Student of PATE, Private-kNN or PETDL, or model trained with noise. Predicts
        class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        Privacy statement of all that is published: the model, and its metrics.

    model_privacy_spent_ : PrivacySpent
        Part of this statement that is about the model alone.

    metrics_ : PrivateMetrics or OutcomeMetrics
        Metrics published with the model, absent without any.
        ``metrics_.privacy_spent_`` is the part that is about the metrics alone.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X was a dataframe with string column names.

    Notes
    -----
    All content of the student is published. Students that are nearest neighbours,
    support vector machines, LabelSpreading or Gaussian processes contain public rows. A
    student class of your own contains all that its `fit` stores, and a FrozenEstimator
    may contain its training rows. A torch module that stores its inputs contains the
    last rows that it predicted. Caches (`memory` of a Pipeline), callbacks and history
    of skorch networks are left out, as they name folders and files.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(600, centers=2, random_state=0)
    >>> clf = PATEClassifier(
    ...     LogisticRegression(),
    ...     n_teachers=40,
    ...     mechanism=GNMax(sigma=10),
    ...     n_queries=10,
    ...     epsilon=None,
    ...     random_state=0,
    ... )
    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> published = clf.publish()
    >>> round(published.card["epsilon"], 2)
    1.48
    >>> bool((published.predict(X) == clf.predict(X)).all())
    True
    """

    __module__ = "sklearn_pate.publication"  # its name in files

    student_: Any
    classes_: NDArray[Any]
    privacy_spent_: PrivacySpent
    model_privacy_spent_: PrivacySpent
    metrics_: ReleasedMetrics
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _card: dict[str, Any]
    _outcome: dict[str, Any] | None = None

    _keeps_rows_apart = ("student_",)

    @property
    def card(self) -> dict[str, Any]:
        """Privacy card: facts about the model for its users, as plain values.

        :meth:`save` writes the card beside the model, with the "sha256" of the model
        file. The privacy statement covers everything on the card that depends on
        private data. Without a guarantee, "epsilon" is None.

        Returns
        -------
        card : dict
            Copy of the card, for strict JSON.
        """
        check_is_fitted(self, "student_")
        return deepcopy(self._card)

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError, as a published model cannot be fitted.

        Parameters
        ----------
        X : object
            Not used.

        y : object
            Not used.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "A PublishedClassifier cannot be fitted: it has no private rows. Fit a "
            "private classifier and publish that, or pass FrozenEstimator(published) "
            "to a function that fits its estimators."
        )

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False
    ) -> list[str]:
        """Write the model to `path`, and its privacy card to the same folder.

        skops writes the model file, and loading runs no code from the file. Model file
        and card are written completely before the files get their final names.

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
            Types that a receiver must trust, by ``load(path, trusted=trusted)``. Send
            this list with the files. The list is empty for most models.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileExistsError
            If a file exists and `overwrite` is False.

        ValueError
            If `path` does not end in ".skops", or the student cannot be saved, such as
            a student with a torch module of your own (unless DP-SGD trained the module
            from its class).

        Notes
        -----
        The card has the sha256 of the model file, and the model file has a copy of the
        rest of the card. The hash shows damage and mix-ups, but is not a signature, as
        a forger can replace both files. Publish the sha256 of the card file elsewhere,
        so that users can compare.
        """
        check_is_fitted(self, "student_")
        skops_io = import_skops()
        model_path, card_path = paths_of(path)
        check_can_write((model_path, card_path), overwrite=overwrite, name="path=")
        model, text, types = self._packed(skops_io)
        # The card is last: without it, or with an old one, load() raises.
        write_files({model_path: model, card_path: text})
        return sorted(types)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, trusted: Collection[str | type] = ()
    ) -> Self:
        """Read a model and its privacy card, and check that model and card agree.

        Parameters
        ----------
        path : str or path-like
            Path of the model file that :meth:`save` wrote. The card must be in the same
            folder.

        trusted : collection of str or type, default=()
            Types that may be loaded, in addition to types that this package and skops
            trust. Loading a type may run its code: trust no type in files of strangers.
            Forests need ``trusted=["sklearn.tree._tree.Tree"]``, as forged trees may
            crash Python. Mechanisms of your own need to be in `trusted`, too.

        Returns
        -------
        published : PublishedClassifier
            Model with the same predictions as the saved model.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileNotFoundError
            If the model or its card is missing.

        ValueError
            If a file is damaged, changed, too large or of an unknown format, or
            contains types that are not trusted. Also if the stated cost differs from
            the cost of the mechanism, or the card belongs to another student.

        Warns
        -----
        InconsistentVersionWarning
            If the model was published with another version of scikit-learn.

        Notes
        -----
        The statement is computed again from mechanism, delta, unit, assumptions and
        numbers on the card. The computation takes up to a second, or several seconds
        for :class:`~sklearn_pate.mechanisms.LNMax` with much noise. Epsilon and text of
        the card must equal those of the computed statement, except for rounding: a
        relative difference of epsilon of up to 1e-9, and up to 1e-5 for DP-SGD. Mu,
        Renyi curve, privacy profile and facts are on no card; they are attributes of
        ``privacy_spent_``. The check shows consistency, not authenticity: see
        :meth:`save`.
        """
        return cls._load(path, trusted)

    @classmethod
    def _load(
        cls,
        path: str | os.PathLike[str],
        trusted: Collection[str | type],
        kind: str | None = None,
    ) -> Self:
        """Read a model of classes, or of the classes of a `kind` of outcome."""
        skops_io = import_skops()
        type_names(trusted)  # its check, before files are read
        return cls._checked(skops_io, *read_pair(path), trusted, kind)

    @classmethod
    def _checked(
        cls,
        skops_io: ModuleType,
        model: bytes,
        card: dict[str, Any],
        paths: tuple[Path, Path],
        trusted: Collection[str | type],
        kind: str | None = None,
    ) -> Self:
        """Load the content of a model file whose card is that of the file."""
        (model_path, card_path), found = paths, kind_of_outcome(card)
        if found != kind:
            raise ValueError(
                f"{model_path} holds a model of another kind; read it by "
                f"{LOADERS[found]}.load."
            )
        trusted_names = OF_MODELS | type_names(trusted)
        model = with_plain_members(model, model_path)
        unknown = untrusted_types(skops_io, model, model_path) - trusted_names
        if unknown:
            raise ValueError(
                f"{model_path} holds types that are not loaded unless you trust them: "
                f"{printable(', '.join(sorted(unknown)))}. A forged file could use "
                "them to run code or to crash Python. If you know them and the source "
                f"of the file, pass trusted={sorted(unknown)}."
            )
        try:
            content = unpack(skops_io, model, trusted_names)
            published = cls._from_parts(content, card)
            saved_with = card["versions"]["scikit-learn"]
        except Exception as error:
            raise ValueError(
                f"{model_path} cannot be loaded ({type(error).__name__}: "
                f"{printable(error)}). It was saved with "
                f"{_enumerate(card['versions'])}: install these, and the packages of "
                "the student's classes."
            ) from error
        published._take_statement(card_path, trusted=trusted)
        if model_fingerprint(published) != card["model_fingerprint"]:
            raise ValueError(
                f"{model_path} holds another model than {card_path} describes: get "
                "both files again. If packages changed since it was saved, install "
                f"{_enumerate(card['versions'])}."
            )
        if saved_with != sklearn.__version__:
            warn_user(
                InconsistentVersionWarning(
                    estimator_name=cls.__name__,
                    current_sklearn_version=sklearn.__version__,
                    original_sklearn_version=saved_with,
                )
            )
        return published

    @classmethod
    def _from_parts(cls, content: dict[str, Any], card: dict[str, Any]) -> Self:
        """Create a classifier from the content of the model file and the card."""
        classes, student = content["classes"], restored(content)
        wanted = card["classes"]
        if (
            np.shape(classes) != (len(wanted),)  # before tolist()
            or canonical_text([plain_label(one) for one in classes.tolist()])
            != canonical_text(wanted)
        ):
            raise ValueError("the classes of the model differ from those on the card")
        if not hasattr(student, "predict"):
            raise ValueError(f"the student is of type {type(student).__name__}")
        _check_student(student, card)
        n_features, names = card["n_features"], content.get("column_names")
        if names is not None and not (
            isinstance(names, list)
            and len(names) == n_features
            and all(isinstance(one, str) and one.isprintable() for one in names)
        ):
            raise ValueError(
                f"the column names must be {counted(n_features, 'printable text')}"
            )
        columns = content.get("known_columns")
        published = cls()
        published.student_ = student
        published.classes_ = classes
        published.n_features_in_ = n_features
        if card["feature_names"] is not None:
            published.feature_names_in_ = np.array(card["feature_names"], dtype=object)
        # Column names that are no strings.
        if names is not None:
            published._column_names = names
        published._known_columns = None if columns is None else KnownColumns(**columns)
        if "outcome" in card:
            published._outcome = card["outcome"]
        published._card = card
        return published

    def _take_statement(
        self, card_path: Path, *, trusted: Collection[str | type] = ()
    ) -> None:
        """Set the statement that follows from the card."""
        try:
            stated = checked_statements(self._card, trusted=trusted)
        except Exception as error:
            raise ValueError(
                f"{card_path} is inconsistent: {printable(error)}."
            ) from error
        self.privacy_spent_, self.model_privacy_spent_, metrics = stated
        if metrics is not None:
            self.metrics_ = metrics

    def _packed(self, skops_io: ModuleType) -> tuple[bytes, bytes, set[str]]:
        """Return model file and card, which can be read again, and types to trust."""
        check_card(self._card, "The card")
        model, types = self._pack(skops_io)
        text = with_sha256(self._card, model)
        check_sizes(model, text)
        check_can_unpack(model)
        return model, text, types

    def _pack(self, skops_io: ModuleType) -> tuple[bytes, set[str]]:
        """Return the content of the model file, and the types that readers must trust.

        It is loaded once, as a check.
        """
        name = type(self.student_).__name__
        known = getattr(self, "_known_columns", None)
        content = taken_apart(self.student_) | {
            "classes": self.classes_,
            "column_names": getattr(self, "_column_names", None),
            "known_columns": None if known is None else vars(known),
        }
        if any(is_of(one, "torch", "skorch") for one in reachable(content)):
            raise ValueError(
                f"The student, a {name}, holds torch modules, which cannot be saved "
                "without pickle. Pickle the published classifier for readers who trust "
                "you, or train another student: a network of sklearn_pate.students "
                "with its default module, or one of scikit-learn. For DP-SGD, pass the "
                "module's class to skorch, and its parameters as module__..."
            )
        try:
            saved = skops_io.dumps(content)
            types = skops_io.get_untrusted_types(data=saved)
            loaded = self._from_parts(unpack(skops_io, saved, types), self._card)
            loaded.privacy_spent_ = self.privacy_spent_
            if model_fingerprint(loaded) != self._card["model_fingerprint"]:
                raise ValueError("it changes when it is loaded")
        except Exception as error:
            raise ValueError(
                f"The student, a {name}, cannot be saved ({type(error).__name__}: "
                f"{error}). Pickle the published classifier for readers who trust you, "
                "or train a student that skops can save."
            ) from error
        fields = self._card["mechanism"]
        if fields["parameters"] is None:
            raise ValueError(
                f"The mechanism, {fields['class']}, has parameters that are not plain "
                "values, so that readers cannot compute its cost. Pickle the "
                "published classifier for readers who trust you."
            )
        to_trust = (set(types) - OF_MODELS) | classes_to_trust(fields)
        return add_card(saved, canonical_text(self._card)), to_trust

    def _published_model(self) -> Any:
        return self.student_

    def check_data(self, X: Any, y: Any, *, groups: Any = None) -> DataProblems:
        """List problems in rows to measure, for the data holder alone. **Sensitive**.

        For rows of :func:`~sklearn_pate.metrics.private_metrics`, before the call.
        Nothing is drawn or charged.

        Parameters
        ----------
        X, y, groups : object
            As in ``private_metrics``.

        Returns
        -------
        problems : tuple of str
            Sentences, with values and numbers of private rows.
        """
        allow_nan = get_tags(self).input_tags.allow_nan
        return DataProblems(
            find_problems(X, y, groups, self.classes_, takes_missing=allow_nan)
        )

    def _unfitted_inner(self) -> Any:
        return getattr(self, "student_", None)  # fitted from the start

    def _check_before_predicting(self, X: Any) -> Any:
        check_is_fitted(self, "student_")
        takes_any = getattr(_reader(self.student_), "_reads_any_value", False)
        return check_features(self, X, reset=False, private=takes_any)

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        student = getattr(self, "student_", None)
        if student is not None:
            of_student = get_tags(_reader(_without_wrappers(student)))
            tags.input_tags.sparse = of_student.input_tags.sparse
            # A constant student accepts anything.
            tags.input_tags.allow_nan = (
                of_student.input_tags.allow_nan or of_student.no_validation
            )
        return tags

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        if not hasattr(self, "student_"):
            return f"{type(self).__name__}()"
        return f"{type(self).__name__}({self.student_!r}, {self.privacy_spent_!r})"

    def _repr_html_(self) -> str:
        shown = getattr(self.__dict__.get("student_"), "_repr_html_", None)
        if shown is None:
            return f"<pre>{html.escape(repr(self))}</pre>"
        statement = html.escape(str(self.privacy_spent_))
        return f"<pre>{statement}</pre>{shown()}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if sklearn.get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_()
        return bundle


def _reader(student: Any) -> Any:
    """Return the step of a student that reads rows, if it reads any value."""
    first = student.steps[0][1] if isinstance(student, Pipeline) else student
    return first if getattr(first, "_reads_any_value", False) else student


def _without_wrappers(student: Any) -> Any:
    """Return the classifier inside of all wrappers."""
    while isinstance(student, WRAPPERS):
        student = student.estimator_
    return student


def _kind_of(student: Any) -> str:
    """Return the full name of a student's class, without wrappers."""
    return full_name(type(_without_wrappers(student)))


def _check_student(student: Any, card: dict[str, Any]) -> None:
    """Raise unless a student is that of a card, and has no HTML in it."""
    if _kind_of(student) != card["model"]:
        raise ValueError(
            f"the student is a {_kind_of(student)}, but the card names a "
            f"{card['model']}"
        )
    n_features = card["n_features"]
    of_student = getattr(student, "n_features_in_", n_features)
    # A constant student takes any number of features.
    if of_student != n_features and not isinstance(student, DummyClassifier):
        raise ValueError(
            f"the student has {counted(of_student, 'feature')}, but the card has "
            f"{n_features}"
        )
    # scikit-learn writes these links into notebooks without escaping them.
    for one in reachable(student):
        if any("_doc_link" in str(name) for name in getattr(one, "__dict__", ())):
            raise ValueError(
                f"a {type(one).__name__} in it has its own link to documentation"
            )


def _enumerate(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _make_card(
    published: Any, mechanism: Mechanism, deployment: Deployment
) -> dict[str, Any]:
    """Write the card of a published classifier, which is complete but for its card."""
    names = getattr(published, "feature_names_in_", None)
    metrics = getattr(published, "metrics_", None)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **release_fields(
            published.privacy_spent_,
            published.model_privacy_spent_,
            mechanism,
            deployment,
        ),
        "metrics": None if metrics is None else metrics.to_dict(),
        "model": _kind_of(published.student_),
        "model_fingerprint": model_fingerprint(published),
        "classes": [plain_label(label) for label in published.classes_.tolist()],
        "n_features": published.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        **({} if published._outcome is None else {"outcome": published._outcome}),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions_of(published.student_),
    }


def publish(
    estimator: Any,
    *,
    deployment: Deployment | None = None,
    metrics: ReleasedMetrics | None = None,
) -> PublishedClassifier:
    """Publish the model and the privacy statement of a fitted private classifier.

    The result may be published with its statement. Publication is post-processing, and
    has no privacy cost. ``estimator.publish()`` calls this function.

    Parameters
    ----------
    estimator : private classifier
        Fitted :class:`~sklearn_pate.PATEClassifier`, classifier of
        ``sklearn_pate.learners``, or
        :class:`~sklearn_pate.model_selection.PrivateSearchCV`. The classifier is not
        changed. Do not publish the classifier itself, as its parameters may name the
        ledger and the key file.

    deployment : Deployment, default=None
        Description of data, purpose and responsibilities, repeated on the privacy card.
        No privacy statement covers this text. With None, the description is empty.

    metrics : PrivateMetrics or OutcomeMetrics, default=None
        Metrics of this model by :func:`~sklearn_pate.metrics.private_metrics`, repeated
        on the privacy card. The statement is then of model and metrics together: their
        costs add up, or :func:`~sklearn_pate.model_selection.fit_and_measure` made both
        at the larger of the costs.

    Returns
    -------
    published : PublishedClassifier
        Copy of the model, with its privacy statement.

    Raises
    ------
    NotFittedError
        If `estimator` is not fitted.

    ValueError
        If `estimator` is not a private classifier of this package, or another parameter
        contradicts its statement. For example, `metrics` are of another model, or
        `deployment` states a number of units that is protected.

    Warns
    -----
    PrivacyLeakWarning
        If the noise was seeded: there is then no guarantee.

    Notes
    -----
    Differential privacy is closed under post-processing (Dwork, McSherry, Nissim, Smith
    2006, "Calibrating noise to sensitivity in private data analysis").

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.mechanisms import GNMax
    >>> from sklearn_pate.publication import publish
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=10),
    ...     epsilon=None,
    ...     classes=["ill", "well"],
    ... )
    >>> votes = 200 * [["ill", "well", "well"]]  # 200 parties that agree
    >>> published = publish(pate.fit_from_votes([[0.0], [5.0], [6.0]], votes))
    >>> published.predict([[0.0], [6.0]])
    array(['ill', 'well'], dtype='<U4')
    >>> print(f"{published.card['epsilon']:.2f} for one {published.card['unit']}")
    0.84 for one party
    """
    if not hasattr(type(estimator), "_released_by"):
        raise ValueError(
            f"estimator is of type {type(estimator).__name__}, which cannot be "
            "published; pass a private classifier of sklearn_pate, such as "
            "PATEClassifier, or the last step of a Pipeline that ends in one."
        )
    check_is_fitted(estimator, "privacy_spent_")
    spent, mechanism = estimator.privacy_spent_, estimator._released_by
    deployment = checked_deployment(deployment, spent)
    if metrics is not None:
        check_metrics(metrics, [model_fingerprint(estimator)], spent)
    published = PublishedClassifier()
    published.student_ = estimator._published_model()
    published.classes_ = estimator.classes_.copy()
    published.privacy_spent_ = published.model_privacy_spent_ = spent
    if metrics is not None:
        published.privacy_spent_ = with_metrics(spent, metrics.privacy_spent_)
        published.metrics_ = metrics
    published.n_features_in_ = int(estimator.n_features_in_)
    if hasattr(estimator, "feature_names_in_"):
        published.feature_names_in_ = estimator.feature_names_in_.copy()
    if hasattr(estimator, "_column_names"):
        published._column_names = [*estimator._column_names]
    if getattr(estimator, "_outcome", None) is not None:
        published._outcome = deepcopy(estimator._outcome)
    learner = getattr(estimator, "best_estimator_", estimator)
    published._known_columns = getattr(learner, "_known_columns", None)
    published._card = _make_card(published, mechanism, deployment)
    if published._card["epsilon"] is None:
        warn_user(
            "This model and its card have no privacy guarantee (epsilon=inf). Before "
            "publication, fit it again without a seed of the noise, and with public "
            "bounds.",
            PrivacyLeakWarning,
        )
    return published
