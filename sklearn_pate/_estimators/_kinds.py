"""Kinds of estimators, their last steps, and checks of them."""

import sys
from numbers import Real
from typing import Any

from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from sklearn_pate._estimators._isolation import check_cloneable


def last_step(estimator: Any) -> Any:
    """Return the last step of nested pipelines, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def in_last_step(estimator: Any, name: str) -> str:
    """Return the name, in a Pipeline, of a parameter of its last step."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        step, estimator = estimator.steps[-1]
        prefix += f"{step}__"
    return prefix + name


def with_last_step(estimator: Any, last: Any) -> Any:
    """Return a copy of nested pipelines with another last step, or that step alone."""
    if not isinstance(estimator, Pipeline):
        return last
    *front, (name, inner) = estimator.steps
    return Pipeline([*front, (name, with_last_step(inner, last))])


def parts(estimator: Any) -> list[Any]:
    """List an estimator and all its parameters, as in a pipeline or a search."""
    return [estimator, *estimator.get_params(deep=True).values()]


def accepts_unlabeled(student: Any) -> bool:
    """Check whether a student takes rows with y = -1, and so gets all public rows.

    True for scikit-learn's semi-supervised classifiers, for any estimator with an
    attribute ``accepts_unlabeled = True``, and for a Pipeline that ends in one.
    """
    declared = declares(student, "accepts_unlabeled")
    if declared is not None:
        return declared
    from sklearn.semi_supervised import (  # slow to import
        LabelPropagation,
        LabelSpreading,
        SelfTrainingClassifier,
    )

    return isinstance(
        last_step(student), (SelfTrainingClassifier, LabelSpreading, LabelPropagation)
    )


def accepts_soft_labels(student: Any) -> bool:
    """Check whether each row of y may be a histogram, or probabilities.

    True for any estimator with an attribute ``accepts_soft_labels = True``, and for a
    Pipeline that ends in one.
    """
    return bool(declares(student, "accepts_soft_labels"))


def declares(student: Any, attribute: str) -> bool | None:
    """Read an attribute of the last step of a student; None without it."""
    declared = getattr(last_step(student), attribute, None)
    return None if declared is None else bool(declared)


def is_network(estimator: Any, kind: str = "NeuralNet") -> bool:
    """Check for a network of skorch, whose loss takes class indices."""
    skorch = sys.modules.get("skorch")
    return skorch is not None and isinstance(estimator, getattr(skorch, kind))


def is_binary_network(estimator: Any) -> bool:
    """Check for a network of skorch whose loss compares floats."""
    return is_network(estimator, "NeuralNetBinaryClassifier")


def has_after_fit(classifier: Any, method: str) -> bool:
    """Check whether a classifier has a method after `fit`, fitted or not."""
    # A StackingClassifier does not name its default before `fit`.
    unnamed = [
        name
        for name, value in classifier.get_params().items()
        if name.rpartition("__")[2] == "final_estimator" and value is None
    ]
    if unnamed:
        combiners = dict.fromkeys(unnamed, LogisticRegression())
        classifier = clone(classifier).set_params(**combiners)
    return hasattr(classifier, method)


def keeps_rows_apart(estimator: Any) -> bool:
    """Check whether no bit of a transformed or scored row depends on other rows.

    Classes of this package that are tested for it list their parts that must, too. A
    subclass may compute anything.
    """
    parts = vars(type(estimator)).get("_keeps_rows_apart")
    return parts is not None and all(
        keeps_rows_apart(getattr(estimator, part, None)) for part in parts
    )


def is_of(one: Any, *packages: str) -> bool:
    """Check whether an object's class, or a base of it, is from one of the packages."""
    return any(
        kind.__module__.partition(".")[0] in packages for kind in type(one).__mro__
    )


def check_classifier(name: str, estimator: Any) -> None:
    """Raise ValueError unless an estimator is a classifier, or None."""
    if estimator is None:
        return
    if isinstance(estimator, type):
        raise ValueError(
            f"{name}={estimator.__name__} is a class; pass an instance, "
            f"{estimator.__name__}()."
        )
    if hasattr(estimator, "fit"):
        _check_tags(name, estimator, "ClassifierMixin")
    # Some classifiers have `predict` only once they are fitted.
    if not (hasattr(estimator, "fit") and is_classifier(estimator)):
        last, hint = last_step(estimator), ""
        if isinstance(last, ClassifierMixin):
            raise ValueError(
                f"{name}={estimator!r} is not a classifier to scikit-learn, as "
                f"{type(last).__name__} has its bases in the wrong order; write class "
                f"{type(last).__name__}(ClassifierMixin, BaseEstimator)."
            )
        if isinstance(estimator, Real):
            hint = f" For the privacy budget, write epsilon={estimator!r}."
        raise ValueError(
            f"{name}={estimator!r} is not a classifier; pass one, such as "
            f"RandomForestClassifier().{hint}"
        )
    check_cloneable(name, estimator)


def check_transformer(representation: Any) -> None:
    """Raise ValueError unless a representation is a transformer, or None."""
    if representation is None:
        return
    if isinstance(representation, type) or not (
        hasattr(representation, "fit") and hasattr(representation, "transform")
    ):
        raise ValueError(
            f"representation={representation!r} is not a transformer; pass one "
            "with fit and transform, such as PCA(50)."
        )
    _check_tags("representation", representation, "TransformerMixin")
    check_cloneable("representation", representation)


def _check_tags(name: str, estimator: Any, mixin: str) -> None:
    """Raise ValueError unless scikit-learn can read the tags of an estimator."""
    try:
        get_tags(estimator)
    except AttributeError as error:
        raise ValueError(
            f"{name}={estimator!r} has no __sklearn_tags__, or contains an estimator "
            f"without it; derive its class from {mixin} and BaseEstimator of "
            "sklearn.base, in this order."
        ) from error
