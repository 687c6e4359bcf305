"""PublishedClassifier: a model with its statement, for publication."""

import hashlib
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

from sklearn_pate._estimators._class_codes import (
    ContiguousClasses,
    StudentPredictionMixin,
    is_of,
)
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._file_content import check_can_write, write_files
from sklearn_pate._inputs._labels import plain_label
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms._mechanism import Mechanism
from sklearn_pate.metrics import PrivateMetrics
from sklearn_pate.publication._card_check import (
    check_metrics,
    checked_metrics,
    checked_statement,
)
from sklearn_pate.publication._deployment import Deployment, checked_deployment
from sklearn_pate.publication._model_file import (
    TRUSTED,
    add_card,
    check_sizes,
    import_skops,
    paths_of,
    printable,
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
    classes_to_trust,
    full_name,
    release_fields,
    written_card,
)

# Parts of the statement in the model file.
STATED = ("n_classes", "statement")


class PublishedClassifier(StudentPredictionMixin, ClassifierMixin, BaseEstimator):
    """Published model with its privacy statement.

    Created by ``publish()`` of a private classifier, such as
    :meth:`PATEClassifier.publish`, or read by :meth:`load`. The model predicts like
    that classifier. It contains none of its parameters: no teacher, no ledger, and no
    index of a public row. The model may be published under its statement, saved by
    :meth:`save`, or pickled.

    `fit` raises; it exists because scikit-learn requires it of estimators. A clone is
    the object itself. Where it would be fitted, pass it as a ``FrozenEstimator``.

    Attributes
    ----------
    student_ : classifier
        Student of PATE, Private-kNN or PETDL, or the model trained with noise. The
        student predicts class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        Privacy statement of the model.

    metrics_ : PrivateMetrics or None
        Metrics that were published with the model, with a statement of their own.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X was a dataframe with string column names.

    Notes
    -----
    The content of the student is published with it. Nearest neighbours, support vector
    machines, LabelSpreading and Gaussian processes hold public rows, which are public
    by assumption; seeds of students may be public. A student class of your own holds
    whatever its `fit` keeps, and a FrozenEstimator in it the rows that it was fitted
    on. A torch module that stores the rows that it is called on is published with those
    it predicted last. Caches (`memory` of a Pipeline) and the callbacks and history of
    skorch networks are left out, as they name folders and files.

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
    ... )
    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> published = clf.publish()
    >>> round(published.card["epsilon"], 2)
    1.48
    >>> bool((published.predict(X) == clf.predict(X)).all())
    True
    """

    student_: Any
    classes_: NDArray[Any]
    privacy_spent_: PrivacySpent
    metrics_: PrivateMetrics | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _card: dict[str, Any]

    @property
    def card(self) -> dict[str, Any]:
        """Privacy card: the facts about the model for its readers, as plain values.

        :meth:`save` writes the card beside the model, with the "sha256" of the model
        file. The statement covers everything on the card that depends on private data.
        Without a guarantee, "private" is False and "epsilon" None.

        Returns
        -------
        card : dict
            Copy of the card, for strict JSON.
        """
        check_is_fitted(self, "student_")
        return deepcopy(self._card)

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError: a published model cannot be fitted.

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
            "to what needs to fit its estimators."
        )

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False
    ) -> list[str]:
        """Write the model to `path` and its privacy card beside it.

        skops writes the model file: loading it runs no code from the file. Both files
        are written completely before they are renamed to their final names.

        Parameters
        ----------
        path : str or path-like
            Path of the model file, such as "model.skops". The card goes to
            "model.json".

        overwrite : bool, default=False
            Replace existing files.

        Returns
        -------
        trusted : list of str
            Types that a receiver has to trust, as ``load(path, trusted=trusted)``. Send
            the list with the files. The list is empty for most models.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileExistsError
            If a file exists and `overwrite` is False.

        ValueError
            If `path` does not end in ".skops", or the student cannot be saved. For
            example, it has a torch module of your own (unless DP-SGD trained it from
            its class).

        Notes
        -----
        The card holds the sha256 of the model file, and the model file a copy of the
        rest of the card. The hash shows damage and mix-ups. The hash is no signature,
        as a forger can replace both files. Publish the sha256 of the card file
        elsewhere, for readers to compare.
        """
        check_is_fitted(self, "student_")
        skops_io = import_skops()
        model_path, card_path = paths_of(path)
        check_card(self._card, "The card")
        check_can_write((model_path, card_path), overwrite=overwrite, name="path=")
        model, types = self._pack(skops_io)
        card = self._card | {"sha256": hashlib.sha256(model).hexdigest()}
        text = written_card(card)
        check_sizes(model, text)
        # The card is last: without it, or with an old one, load() raises.
        write_files({model_path: model, card_path: text})
        return sorted(types)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, trusted: Collection[str | type] = ()
    ) -> Self:
        """Read a model and its privacy card, and check one against the other.

        Parameters
        ----------
        path : str or path-like
            Path of the model file that :meth:`save` wrote; its card is beside it.

        trusted : collection of str or type, default=()
            Types that may be loaded, in addition to types of this package and types
            that skops trusts. The error names missing types. Loading a type may run its
            code: trust none in files of strangers. From version 0.16, skops does not
            trust the trees of scikit-learn, as forged ones may crash Python: a forest
            needs ``trusted=["sklearn.tree._tree.Tree"]``. A mechanism of your own also
            needs trust, as its class computes the cost.

        Returns
        -------
        published : PublishedClassifier
            Model that predicts as before.

        Raises
        ------
        ImportError
            If skops is not installed.

        FileNotFoundError
            If the model or its card is missing.

        ValueError
            If a file is damaged, changed, too large or of an unknown format, or
            contains types that are not trusted. Also if the stated cost is not the cost
            of the mechanism, or the card belongs to another student.

        Warns
        -----
        InconsistentVersionWarning
            If it was published with another version of scikit-learn.

        Notes
        -----
        The statement is derived again from mechanism, delta, unit, assumptions and
        numbers on the card. This takes up to a second, or several for
        :class:`~sklearn_pate.mechanisms.LNMax` with much noise. All other fields about
        the release must equal the derived fields, except for rounding. Costs may differ
        by one part in 10^9, and epsilon and deltas of DP-SGD by one part in 10^5. The
        check shows consistency, not authenticity. Only your signature shows who
        published the files; see :meth:`save`.
        """
        skops_io = import_skops()
        trusted_names = TRUSTED | type_names(trusted)
        model, card, (model_path, card_path) = read_pair(path)
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
            parts = [content[name] for name in STATED]
            saved_with = card["versions"]["scikit-learn"]
        except Exception as error:
            raise ValueError(
                f"{model_path} cannot be loaded ({type(error).__name__}: "
                f"{printable(error)}). It was saved with "
                f"{_enumerate(card['versions'])}: install these, and the packages of "
                "the student's classes."
            ) from error
        published._take_statement(card_path, *parts, trusted=trusted)
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
            or [plain_label(label) for label in classes.tolist()] != wanted
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
        published = cls()
        published.student_ = student
        published.classes_ = classes
        published.n_features_in_ = n_features
        if card["feature_names"] is not None:
            published.feature_names_in_ = np.array(card["feature_names"], dtype=object)
        # Column names that are no strings.
        if names is not None:
            published._column_names = names
        published._card = card
        return published

    def _take_statement(
        self,
        card_path: Path,
        n_classes: int,
        statement: str,
        *,
        trusted: Collection[str | type] = (),
    ) -> None:
        """Set the statement that follows from the card, if the model file agrees."""
        try:
            spent = checked_statement(self._card, trusted=trusted)
            metrics = checked_metrics(self._card, spent)
            for name, of_card, of_model in (
                ("n_classes", len(self._card["classes"]), n_classes),
                ("statement", self._card["statement"], statement),
            ):
                if of_card != of_model:
                    raise ValueError(
                        f"its {name} differs from the {name} in the model file"
                    )
        except Exception as error:
            raise ValueError(
                f"{card_path} is inconsistent with itself or its model: "
                f"{printable(error)}."
            ) from error
        self.privacy_spent_, self.metrics_ = spent, metrics

    def _pack(self, skops_io: ModuleType) -> tuple[bytes, set[str]]:
        """Return the content of the model file, and the types that readers must trust.

        It is loaded once, as a check.
        """
        name = type(self.student_).__name__
        stated = (len(self.classes_), self.privacy_spent_.in_one_line())
        content = (
            taken_apart(self.student_)
            | {
                "classes": self.classes_,
                "column_names": getattr(self, "_column_names", None),
            }
            | dict(zip(STATED, stated, strict=True))
        )
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
            self._from_parts(unpack(skops_io, saved, types), self._card)
        except Exception as error:
            raise ValueError(
                f"The student, a {name}, cannot be saved ({type(error).__name__}: "
                f"{error}). Pickle the published classifier for readers who trust you, "
                "or train a student that skops can save."
            ) from error
        fields = self._card["mechanism_fields"]
        if fields["parameters"] is None:
            raise ValueError(
                f"The mechanism, {fields['class']}, has parameters that are not plain "
                "values, so that readers cannot compute its cost. Pickle the "
                "published classifier for readers who trust you."
            )
        to_trust = (set(types) - TRUSTED) | classes_to_trust(fields)
        return add_card(saved, canonical_text(self._card)), to_trust

    def _unfitted_student(self) -> Any:
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
        if isinstance(student, ContiguousClasses):
            student = student.estimator
        if student is not None:
            of_student = get_tags(_reader(student))
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


def _check_student(student: Any, card: dict[str, Any]) -> None:
    """Raise unless a student is that of a card, and has no HTML in it."""
    if full_name(type(student)) != card["model"]:
        raise ValueError(
            f"the student is a {full_name(type(student))}, but the card names a "
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
    metrics = published.metrics_
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **release_fields(published.privacy_spent_, mechanism, deployment),
        "metrics": None if metrics is None else metrics.to_dict(),
        "model": full_name(type(published.student_)),
        "classes": [plain_label(label) for label in published.classes_.tolist()],
        "n_features": published.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions_of(published.student_),
    }


def publish(
    estimator: Any,
    *,
    deployment: Deployment | None = None,
    metrics: PrivateMetrics | None = None,
) -> PublishedClassifier:
    """Publish the model and the privacy statement of a fitted private classifier.

    The result may be published under its statement. Publication has no privacy cost, as
    it is post-processing of the release. ``estimator.publish()`` calls this function.

    Parameters
    ----------
    estimator : private classifier
        Fitted :class:`~sklearn_pate.PATEClassifier`, classifier of
        ``sklearn_pate.learners``, or
        :class:`~sklearn_pate.model_selection.PrivateSearchCV`. The classifier is not
        changed. It must not be published itself, as its parameters may name the ledger
        and its key.

    deployment : Deployment, default=None
        Description of data, purpose and responsibilities, which the card repeats. The
        description is published, and no privacy statement covers it. None gives an
        empty one.

    metrics : PrivateMetrics, default=None
        Metrics of this model by :func:`~sklearn_pate.metrics.private_metrics`, which
        the card repeats with their own privacy statement. The costs of model and
        metrics add.

    Returns
    -------
    published : PublishedClassifier
        Copy of the model, with its statement.

    Raises
    ------
    NotFittedError
        If `estimator` is not fitted.

    ValueError
        If `estimator` is no private classifier of this package, or another parameter
        contradicts its statement. For example, `metrics` protect another unit, or
        `deployment` has a protected number of units.

    Warns
    -----
    PrivacyLeakWarning
        If there is no privacy guarantee, because the noise was seeded.

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
    if not hasattr(estimator, "_published_model"):
        raise ValueError(
            f"estimator is of type {type(estimator).__name__}, which cannot be "
            "published; pass a private classifier of sklearn_pate, such as "
            "PATEClassifier, or the last step of a Pipeline that ends in one."
        )
    check_is_fitted(estimator, "privacy_spent_")
    spent, mechanism = estimator.privacy_spent_, estimator._released_by
    deployment = checked_deployment(deployment, spent)
    if metrics is not None:
        check_metrics(metrics, estimator.classes_, spent)
    published = PublishedClassifier()
    published.student_ = estimator._published_model()
    published.classes_ = estimator.classes_.copy()
    published.privacy_spent_, published.metrics_ = spent, metrics
    published.n_features_in_ = int(estimator.n_features_in_)
    if hasattr(estimator, "feature_names_in_"):
        published.feature_names_in_ = estimator.feature_names_in_.copy()
    if hasattr(estimator, "_column_names"):
        published._column_names = [*estimator._column_names]
    published._card = _make_card(published, mechanism, deployment)
    if not published._card["private"]:
        warn_user(
            "This model and its card have no privacy guarantee (epsilon=inf). Before "
            "publication, fit it again without a seed of the noise, and with public "
            "bounds.",
            PrivacyLeakWarning,
        )
    return published
