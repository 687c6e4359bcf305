"""Arguments of `fit` in dask collections, whose rows stay on the workers."""

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sklearn_pate._aggregation._checks import (
    check_number_of_groups,
    check_one_source,
    check_target,
    check_unit,
    no_usable_row,
    unwrapped,
)
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._inputs._features import check_column_names, check_public_features
from sklearn_pate._inputs._known_columns import warn_of_text
from sklearn_pate._inputs._labels import check_classes, check_label_type, read_classes
from sklearn_pate._teachers._data_problems import DataProblems, problems_of_labels
from sklearn_pate._teachers._shards import ONE_GROUP
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._statement import (
    COLUMNS,
    LABEL_SET,
    LABEL_SET_READ,
    PUBLIC_ROWS,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.distributed._dask import (
    DaskRows,
    PartitionFacts,
    clear_errors,
    facts_of,
    partitions,
    read_labels_of,
    rows_like,
)


def read_dask_inputs(
    estimator: Any, X: Any, y: Any, X_public: Any, groups: Any, *, key: int
) -> tuple[DaskRows, PublicInputs]:
    """Check the arguments of `fit`, of which only public rows are in memory.

    Sets ``n_features_in_`` and ``feature_names_in_``. The workers read labels and
    groups once, and all rows if a ledger asks for their fingerprint; numbers of rows
    and labels reach the client.
    """
    if y is None:
        check_target(estimator, y)
    check_unit(estimator.privacy_unit, groups)
    check_number_of_groups(estimator)
    check_one_source(estimator, X_public)
    _check_for_cluster(estimator)
    client = DaskRows.client()
    like = rows_like(X)
    validate_data(estimator, like, reset=True, skip_check_array=True)
    check_column_names(estimator, like, reset=True)
    X_public = check_public_features(
        estimator, unwrapped(X_public, like, estimator.privacy_unit), like
    )
    warn_of_text(X_public)
    given = estimator.classes
    known = None if given is None else check_classes(given)
    if known is not None:
        check_label_type(getattr(y, "_meta", y), known)
    parts = _parts(X, y, groups)
    hashed = estimator.ledger is not None
    read = partial(delayed(read_labels_of), delayed(like), known, key)
    # Labels and ids are read once; they are small, and stay on the workers.
    labels = client.persist(
        [
            read(number, of_X if hashed else None, *others)
            for number, (of_X, *others) in enumerate(parts)
        ]
    )
    with clear_errors():
        facts: list[PartitionFacts] = client.gather(
            client.compute([delayed(facts_of)(one) for one in labels])
        )
    classes, unseen = _classes(known, facts)
    rows = DaskRows(
        [(of_X, one) for (of_X, *_), one in zip(parts, labels, strict=True)],
        like,
        classes,
        facts,
        key,
        groups is not None,
        DataProblems(
            problems_of_labels(
                classes.tolist(),
                unseen.tolist(),
                sum((one.others for one in facts), Counter()),
                sum(one.n_without_id for one in facts),
            )
        ),
    )
    if not any(one.n_usable for one in facts):
        raise no_usable_row(given, with_groups=groups is not None)
    only_ids = {one.only_id for one in facts} - {b""}
    if groups is not None and len(only_ids) == 1 and None not in only_ids:
        raise ValueError(ONE_GROUP)
    check_delta_is_small(estimator.delta, rows.n_rows, "rows")
    label_set = LABEL_SET_READ if given is None else LABEL_SET
    public = PublicInputs(
        classes, X_public, estimator.privacy_unit, (label_set, PUBLIC_ROWS, COLUMNS)
    )
    return rows, public


def _check_for_cluster(estimator: Any) -> None:
    """Raise for parameters that need the rows in one process."""
    for name in ("public_size", "synthetic", "memory"):
        value = getattr(estimator, name)
        if value is not None:
            raise ValueError(
                f"{name}={value!r} needs private rows in memory, but X is a dask "
                f"collection; set {name}=None"
                + ("." if name == "memory" else ", and pass X_public.")
            )


def _parts(X: Any, y: Any, groups: Any) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of X, y and groups side by side, as delayed objects."""
    of_X = partitions("X", X)
    others = []
    for name, values in (("y", y), ("groups", groups)):
        if values is None:
            others.append([None] * len(of_X))
            continue
        of_values = partitions(name, values)
        if len(of_values) != len(of_X):
            raise ValueError(
                f"X has {counted(len(of_X), 'partition')} and {name} has "
                f"{len(of_values)}; create both from one collection."
            )
        others.append(of_values)
    return list(zip(of_X, *others, strict=True))


def _classes(
    known: NDArray[Any] | None, facts: list[PartitionFacts]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the classes, and those of them that no row has."""
    labels = [one.labels for one in facts if one.labels.size]
    seen = np.concatenate(labels) if labels else np.zeros(0)
    if known is None:
        return read_classes(seen)[0], np.zeros(0)
    return known, known[~np.isin(known, seen)]
