"""Rehearsal of teachers and students on public rows, and checks of probabilities."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._class_codes import RelabeledClassifier
from sklearn_pate._estimators._isolation import one_thread, quiet, seeded_globals
from sklearn_pate._estimators._kinds import (
    accepts_soft_labels,
    is_binary_network,
    is_network,
    last_step,
)
from sklearn_pate._estimators._predictions import (
    WrappingClassifier,
    in_all_classes,
    predict_codes,
)
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import (
    cause_of,
    in_short,
    is_of_values,
    quotes_values,
    remedy_of,
)
from sklearn_pate._teachers._training import (
    Contribution,
    Form,
    Poll,
    Shard,
    train_shards,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.students._train_student import train_student

#: What is in the errors below, whose reason is not a number of rows.
OF_OUTPUTS = re.compile("no class probabilities|needs logits")
# Largest difference of a sum of probabilities from 1, in half precision.
_ROUND_OFF = 0.01
# Rows of the first rehearsal of a student, and rows of each class. Ten folds work.
_FEW_ROWS, _FEW_OF_CLASS = 100, 10
# Rows, and rows of a class, whose number is no reason to fail.
_MANY_ROWS, _MANY_OF_CLASS = 2000, 30


def check_probabilities(classifier: Any, X: Any, n_classes: int) -> None:
    """Raise ValueError if a classifier has class probabilities that are none.

    `classifier` was fitted on class indices, and on nothing sensitive.
    """
    try:
        predicted = np.asarray(classifier.predict_proba(X))
    except Exception:  # it has none, or some that only predictions do without
        return
    network, inputs = _network(classifier, X)
    if network is not None:
        _check_logits(network, inputs)
    predicted = in_all_classes(predicted, classifier, n_classes, absent=0.0)
    problem = _why_none(predicted)
    if predicted.shape != (X.shape[0], n_classes):
        problem = f"shape {predicted.shape}"
    if problem is not None:
        raise ValueError(
            f"predict_proba returned {problem} for {X.shape[0]} rows and {n_classes} "
            "classes, which are no class probabilities; use a classifier whose "
            "probabilities of each row sum to 1 (of a skorch network, set "
            "predict_nonlinearity)"
        )


def _check_logits(network: Any, X: Any) -> None:
    """Raise ValueError if outputs of a skorch network do not suit its loss."""
    from torch import nn  # skorch has imported it

    loss, outputs = network.criterion_, np.asarray(network.forward(X))
    if isinstance(loss, nn.NLLLoss):
        problem = _why_none(outputs)
        if problem is not None:
            raise ValueError(
                f"its module returned {problem}, which are no class probabilities, but "
                "NLLLoss needs these; add a last softmax layer, or for logits set "
                "criterion=torch.nn.CrossEntropyLoss"
            )
        return
    if is_binary_network(network):
        # After few steps of training, outputs may be within 0 and 1 by chance.
        layers = [one for one in network.module_.modules() if not list(one.children())]
        twice = isinstance(loss, nn.BCEWithLogitsLoss) and isinstance(
            layers[-1], nn.Sigmoid
        )
    else:
        twice = isinstance(loss, nn.CrossEntropyLoss) and _why_none(outputs) is None
    if twice:
        raise ValueError(
            f"its module returned probabilities, but {type(loss).__name__} needs "
            "logits; remove the last layer, which computes probabilities"
        )


def _why_none(values: NDArray[Any]) -> str | None:
    """Describe values that are no class probabilities; None if they are.

    Most rows decide: of naive Bayes with tiny variances, a few have others by rounding.
    """
    sums = values.sum(axis=-1, dtype=np.float64)
    problems = {
        "NaN or infinity": ~np.isfinite(values).all(axis=-1),
        "negative values": (values < 0).any(axis=-1),
        "rows that do not sum to 1": np.abs(sums - 1) > _ROUND_OFF,
    }
    found = (name for name, of_rows in problems.items() if np.mean(of_rows) > 0.5)
    return next(found, None)


def _network(classifier: Any, X: Any) -> tuple[Any, Any]:
    """Return the skorch network in a fitted classifier, and its inputs; None without.

    It may be in a wrapper of this package, or the last step of a Pipeline.
    """
    while True:
        if isinstance(classifier, (RelabeledClassifier, WrappingClassifier)):
            classifier = classifier.estimator_
        elif isinstance(classifier, Pipeline):
            # Steps of imbalanced-learn that resample have no transform.
            front: Any = classifier[:-1] if len(classifier.steps) > 1 else None
            X = front.transform(X) if hasattr(front, "transform") else X
            classifier = classifier.steps[-1][1]
        else:
            break
    return (classifier if is_network(classifier) else None), X


@phase("testing a teacher on public rows")
def rehearse_teacher(
    estimator: Any,
    X_public: Table,
    X_for_teachers: Table,
    form: Form,
    *,
    representation: Any,
    n_rows: int | None,
    seed: int,
) -> None:
    """Train a teacher on public rows with made-up labels, as on private rows.

    `n_rows` is the number of rows of a teacher. Raises ValueError if a teacher fails on
    each of three draws of as many public rows, one of them with two classes only, as
    classes may be too rare in a shard for the teacher. Where `n_rows` is not public,
    and None, a draw is half of the public rows, repeated, so that no teacher fails for
    their number; fewer are tried first. If that half is less than a hundred, or there
    are fewer public rows than a teacher has, only a failure for text, missing values or
    outputs that are no probabilities counts.
    """
    _check_outputs("estimator", estimator, form.n_classes)
    n_public = X_public.shape[0]
    if form.n_classes < 2 or n_rows in (0, 1):
        return
    n_distinct = n_public // 2 if n_rows is None else n_rows
    has_enough = n_distinct <= n_public
    if n_rows is None:
        has_enough = n_distinct >= _FEW_ROWS
    n_distinct = max(min(n_distinct, n_public), 1)
    draws = [(n_distinct, n_named) for n_named in (form.n_classes, 2, form.n_classes)]
    if n_rows is None and n_distinct > _MANY_ROWS:
        draws.insert(0, (_MANY_ROWS, form.n_classes))
    poll = Poll.by_this_thread(
        _brief(estimator), _CheckedForm(form), X_for_teachers, representation
    )
    failures = []
    for attempt, (n_drawn, n_named) in enumerate(draws):
        rng = np.random.RandomState(seed + attempt)
        n_trained = max(n_drawn, _MANY_ROWS) if n_rows is None else n_rows
        rows = np.resize(rng.permutation(n_public)[:n_drawn], n_trained)
        codes = rng.permutation(np.arange(n_trained) % n_named)
        shard = Shard(0, _safe_indexing(X_public, rows), codes, seed)
        with one_thread():
            [result] = train_shards(poll, [shard])
        if result.failure is None:
            return
        failures.append(result.failure)
    failure = failures[-3]  # the first one on as many rows as the message tells
    if has_enough or is_of_values(failure) or OF_OUTPUTS.search(failure):
        made = f"on {counted(n_distinct, 'public row')} with made-up labels"
        raise _refusal("estimator", estimator, failure, made, X_public)


@phase("testing the student on public rows")
def rehearse_student(
    student: Any,
    X_public: Table,
    *,
    n_labeled: int,
    n_classes: int,
    soft: bool,
    seed: int,
    hint: Callable[[NDArray[np.intp]], Any] | None = None,
) -> None:
    """Train a student on public rows with made-up answers, and predict others.

    `n_labeled` is the number of rows with an answer, `soft` whether histograms are
    released, and `hint` returns one about some public rows. Few rows are tried first.
    If they fail, all rows are, with answers of all classes; ValueError is raised if
    these fail, too, unless the reason may be too few answers of a class: the student
    can be trained with two classes, and with more answers of each class. A student of
    soft labels must also follow them.
    """
    _check_outputs("student", student, n_classes)
    n_public = X_public.shape[0]
    if min(n_labeled, n_classes, n_public) < 2:
        return
    trained = _brief(student)

    def failure(n_labeled: int, n_named: int, n_others: int) -> Exception | None:
        """Return the error of a student with these numbers of rows and classes."""
        rng = np.random.RandomState(seed)
        order = rng.permutation(n_public)
        labeled, others = np.resize(order, n_labeled), order[n_labeled:][:n_others]
        rows = np.concatenate([labeled, others])
        answers = rng.permutation(np.arange(n_labeled) % n_named)
        histograms = None
        if soft:
            histograms = rng.randint(-5, 40, size=(n_labeled, n_classes))
            histograms[np.arange(n_labeled), answers] += 100
        # Rows that the student has not seen, if there are.
        last = rows[::-1][: max(len(others), 1)][:_FEW_ROWS]
        try:
            fitted = train_student(
                trained,
                _safe_indexing(X_public, rows),
                np.arange(n_labeled),
                answers,
                n_classes=n_classes,
                seed=seed,
                histograms=histograms,
                hint=None if hint is None else hint(rows),
            )
            unseen = _safe_indexing(X_public, last)
            predict_codes(fitted, unseen, n_classes)
            check_probabilities(fitted, unseen, n_classes)
        except Exception as error:
            vars(error).pop("__notes__", None)  # nothing is spent
            return error
        return None

    few = max(_FEW_ROWS, _FEW_OF_CLASS * n_classes)
    many = max(n_labeled, _MANY_OF_CLASS * n_classes)
    # Few rows gain nothing from several workers.
    with quiet(), seeded_globals(seed), parallel_config(backend="sequential"):
        error = failure(min(few, n_labeled), n_classes, few)
        if error is not None:
            error = failure(n_labeled, n_classes, n_public)
        two_work = error and n_classes > 2 and failure(n_labeled, 2, n_public) is None
        if two_work:
            error = failure(many, n_classes, n_public)
        takes_soft_labels = error is None and soft and accepts_soft_labels(trained)
        if takes_soft_labels and _ignores_soft_labels(
            trained, X_public, min(n_labeled, _FEW_ROWS), n_classes, seed
        ):
            raise ValueError(
                f"student={in_short(student)} ignores soft labels: swapping the soft "
                "labels of public rows does not swap its predictions. Nothing was "
                "charged. Use DistillationClassifier(make_pipeline(student)), which "
                "trains on copies of rows instead of weights."
            )
    if error is not None:
        failed = f"{type(error).__name__}: {error}"
        made = f"on public rows with {n_labeled} made-up answers"
        raise _refusal("student", student, failed, made, X_public) from (
            None if quotes_values(failed) else error
        )


def _check_outputs(name: str, estimator: Any, n_classes: int) -> None:
    """Raise ValueError for a binary network where there are more than two classes.

    It would be trained without an error, and never predict the others.
    """
    if n_classes > 2 and is_binary_network(last_step(estimator)):
        raise ValueError(
            f"{name}={in_short(estimator)} predicts two classes, but there are "
            f"{n_classes}; use a NeuralNetClassifier with an output for each class. "
            "Nothing was charged."
        )


def _ignores_soft_labels(
    student: Any, X_public: Table, n_rows: int, n_classes: int, seed: int
) -> bool:
    """Check whether predictions follow labels that are swapped, but not soft ones."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(X_public.shape[0])[:n_rows]
    X, rows = _safe_indexing(X_public, order), np.arange(len(order))

    def predict(labels: NDArray[np.intp], other: float) -> NDArray[np.intp]:
        """Predict the rows after training; `other` classes have this part of 100."""
        histograms = np.full((len(rows), n_classes), float(other))
        histograms[rows, labels] = 100
        fitted = train_student(
            student,
            X,
            rows,
            labels,
            n_classes=n_classes,
            seed=seed,
            histograms=histograms,
        )
        return predict_codes(fitted, X, n_classes)

    def share(labels: NDArray[np.intp], other: float) -> float:
        """Return the share of rows that follow their label, swapped or not."""
        follows = [predict(one, other) == one for one in (labels, 1 - labels)]
        return float(np.mean(follows[0] & follows[1]))

    try:
        # Labels that this student can learn: its own predictions.
        labels = np.minimum(predict(rng.permutation(rows % 2), 0), 1)
        soft = share(labels, 1 / n_classes)
        # A student that hardly learns, as a constant one, shows nothing.
        return soft < 0.5 and 2 * soft < share(labels, 0) > 0.5
    except Exception:
        return False  # these labels may be too few of a class for the student


def _refusal(
    name: str, estimator: Any, failure: str, made: str, X_public: Table
) -> ValueError:
    """Return the error of a rehearsal, its cause first."""
    if isinstance(estimator, RelabeledClassifier):
        estimator = estimator.estimator
    return ValueError(
        f"{name}={in_short(estimator)} fails: {cause_of(failure)}. It was tried {made}."
        " Nothing was charged. "
        f"{remedy_of(failure, X_public, name, estimator)}".rstrip()
    )


@dataclass(frozen=True)
class _CheckedForm:
    """Form of contributions of teachers whose class probabilities are checked."""

    form: Form

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.form.n_classes

    def read(self, teacher: Any, X_public: Any) -> Contribution:
        """Return the contribution of a teacher, or raise ValueError."""
        check_probabilities(teacher, X_public, self.n_classes)
        return self.form.read(teacher, X_public)

    def constant(self, code: int, n_public: int) -> Contribution:
        """Return the contribution of a teacher of a single class."""
        return self.form.constant(code, n_public)


def _brief(estimator: Any) -> Any:
    """Return a clone that trains for one epoch, wherever it has `max_epochs`."""
    estimator = clone(estimator)
    names = (
        name
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] == "max_epochs" and value
    )
    if epochs := dict.fromkeys(names, 1):
        estimator.set_params(**epochs)
    return estimator
