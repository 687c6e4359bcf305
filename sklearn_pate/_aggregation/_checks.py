"""Checks of parameters and of the arguments of `fit`."""

import os
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Memory

from sklearn_pate._aggregation._design import as_mechanism, as_query_strategy
from sklearn_pate._estimators._isolation import check_cloneable
from sklearn_pate._estimators._kinds import (
    accepts_soft_labels,
    accepts_unlabeled,
    check_classifier,
)
from sklearn_pate._inputs._features import in_short
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate.accounting._value_checks import (
    check_count,
    check_not_masked,
    check_parameters,
)
from sklearn_pate.mechanisms import MeanScores


def read_rarest(class_prior: Any, n_classes: int) -> float | None:
    """Return the share of the rarest class, None if `class_prior` is None.

    Raises ValueError for anything that is no share or list of shares.
    """
    if class_prior is None:
        return None
    check_not_masked("class_prior", class_prior)
    shares = np.asarray(class_prior)
    is_number = shares.dtype.kind in "iuf"
    if shares.ndim and not (
        is_number and shares.shape == (n_classes,) and abs(shares.sum() - 1) < 0.01
    ):
        raise ValueError(
            f"class_prior={class_prior!r} must be {n_classes} shares that sum to 1, or "
            "the share of the rarest class."
        )
    rarest = shares.min() if is_number and shares.size else np.nan
    if not 0 < rarest <= 1 / n_classes:
        raise ValueError(
            f"class_prior={class_prior!r} must be positive, and the share of the "
            f"rarest of {n_classes} classes at most 1/{n_classes}."
        )
    return float(rarest)


def check_one_source(estimator: Any, X_public: Any) -> None:
    """Raise unless public rows have one source."""
    name = type(estimator).__name__
    given = [
        one
        for one, value in (
            ("X_public", X_public),
            (f"public_size={estimator.public_size!r}", estimator.public_size),
            ("synthetic", estimator.synthetic),
        )
        if value is not None
    ]
    if not given:
        raise ValueError(
            f"{name} needs public rows. Pass fit(..., X_public=PublicData(X_public)). "
            "Or set synthetic=PrivateMarginals(domain), which draws rows from noisy "
            "counts over a declared domain. Or set public_size=0.2, which uses a "
            "random fifth of the rows as public, without protection."
        )
    if len(given) > 1:
        both = "both" if len(given) == 2 else "all"
        raise ValueError(
            f"{' and '.join(given)} were {both} given to {name}; pass only one of them."
        )


def check_unit(privacy_unit: str, groups: Any) -> None:
    """Raise unless groups are given for the unit "group", and for no other."""
    if privacy_unit == "row" and groups is not None:
        raise ValueError(
            "groups were passed but privacy_unit='row' protects single rows; set "
            "privacy_unit='group', or leave groups out."
        )
    if privacy_unit == "group" and groups is None:
        raise ValueError(
            "privacy_unit='group' needs groups in fit; pass fit(..., groups=...). "
            "A search or a pipeline passes groups on after "
            "sklearn.set_config(enable_metadata_routing=True)."
        )


def check_number_of_groups(estimator: Any) -> None:
    """Raise ValueError if a number that is needed would depend on private rows."""
    is_open = getattr(estimator, "n_teachers", None) == "auto"
    if estimator.privacy_unit != "group" or not is_open:
        return
    raise ValueError(
        "n_teachers='auto' depends on the number of rows, which is private if "
        "privacy_unit='group'; pass a number, chosen independently of the data, such "
        "as 100."
    )


def check_for_cluster(estimator: Any) -> None:
    """Raise for parameters that need the rows in one process."""
    for name in ("public_size", "synthetic", "codes", "memory"):
        value = getattr(estimator, name)
        if value is not None and not (name == "codes" and value == "auto"):
            raise ValueError(
                f"{name}={in_short(value)} needs private rows in memory, but X is a "
                f"dask collection; set {name}=None"
                + ("." if name == "memory" else ", and pass X_public.")
            )


def check_strategy(query_strategy: Any, mechanism: Any, student: Any) -> None:
    """Raise ValueError unless a query strategy fits the mechanism and the student."""
    check_cloneable("mechanism", mechanism)
    ready = as_mechanism(mechanism)
    if isinstance(ready, MeanScores):
        ready.check()
        return
    check_cloneable("query_strategy", query_strategy)
    strategy = as_query_strategy(query_strategy, ready)
    if strategy is None:
        return
    strategy.check()
    if strategy.interactive != ready.needs_probabilities:
        raise ValueError(
            f"query_strategy={query_strategy!r} and mechanism={mechanism!r} cannot be "
            "combined: "
            + (
                "the mechanism needs class probabilities of a student; use "
                "query_strategy='interactive'."
                if ready.needs_probabilities
                else "the strategy passes class probabilities of a student; use "
                "mechanism='interactive'."
            )
        )
    for classifier in strategy.classifiers(student):
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"query_strategy={query_strategy!r} needs predict_proba, which "
                f"{classifier!r} does not have; use a student that has it, or pass "
                "such a classifier to the strategy."
            )


def check_scores(classifier: Any) -> None:
    """Raise ValueError for a parameter that the release of scores does not use."""
    mechanism = classifier.mechanism
    unused = {"n_queries": "auto", "query_strategy": "auto", "vote": "balanced"}
    for name, default in unused.items():
        value = getattr(classifier, name)
        if not (isinstance(value, str) and value == default):
            raise ValueError(
                f"{name}={value!r} cannot be combined with mechanism={mechanism!r}, "
                f"which answers no queries; set {name}={default!r}, or use "
                "mechanism='gnmax'."
            )
    student = classifier.student
    takes_labels_only = accepts_unlabeled(student) and not accepts_soft_labels(student)
    if student is not None and takes_labels_only:
        raise ValueError(
            f"student={student!r} needs unlabelled rows and hard labels, but "
            f"mechanism={mechanism!r} gives every row soft labels; use another "
            "student, or mechanism='gnmax'."
        )


def check_synthetic(name: str, synthetic: Any) -> None:
    """Raise ValueError unless synthetic rows are described by PrivateMarginals."""
    if synthetic is None:
        return
    if not isinstance(synthetic, PrivateMarginals):
        raise ValueError(
            f"{name} is of type {type(synthetic).__name__}; pass "
            "PrivateMarginals(domain), or None."
        )
    check_parameters(synthetic)


def check_ensemble(classifier: Any) -> None:
    """Raise ValueError for a parameter of teachers that no data can be used with."""
    check_classifier("estimator", classifier.estimator)
    check_count("n_teachers", classifier.n_teachers, also=("auto",))
    check_memory(classifier.memory, classifier.random_state)
    check_n_jobs(classifier.n_jobs)


def memory_location(memory: Any) -> str | None:
    """Return the folder that keeps the votes of finished teachers, None without one."""
    if isinstance(memory, Memory) and memory.backend == "local":
        memory = memory.location
    if memory is None:
        return None
    if not isinstance(memory, (str, os.PathLike)):
        raise ValueError(
            f"memory={memory!r} must be None, a folder, or a joblib.Memory in a folder."
        )
    return os.path.abspath(memory)  # workers may have another working directory


def check_memory(memory: Any, random_state: Any) -> None:
    """Raise ValueError unless the folder and the random state allow its reuse."""
    if memory_location(memory) is None:
        return
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise ValueError(
            f"memory={memory!r} needs an integer random_state, got {random_state!r}: "
            "without it, the next fit would draw other shards and reuse no teacher."
        )


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless a number of jobs is one that joblib accepts."""
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (is_whole and 0 < abs(n_jobs) < 2**31):
        raise ValueError(
            f"n_jobs={n_jobs!r} must be None, a positive integer, or -1 for all cores."
        )


def check_privacy_unit(name: str, privacy_unit: Any) -> None:
    """Raise ValueError unless a unit is known."""
    if privacy_unit not in ("row", "group"):
        raise ValueError(
            f"{name}={privacy_unit!r} is unknown; use 'row' if each person "
            "has one row, or 'group' (with groups=) if a person may have several."
        )
