"""Votes of one teacher, trained where the rows of its shard are stored."""

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._isolation import check_cloneable, one_thread
from sklearn_pate._inputs._features import (
    check_features,
    check_public_features,
    input_tags,
)
from sklearn_pate._inputs._labels import check_classes, public_table
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate._teachers._shards import teacher_seeds
from sklearn_pate._teachers._training import (
    ON_PUBLIC_ROWS,
    Poll,
    Shard,
    VoteForm,
    rows_of,
    train_shards,
)
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.exceptions import TeacherWarning, warn_user


class _Features(BaseEstimator):
    """Reader of features for a teacher, which stays unfitted itself."""

    def __init__(self, teacher: Any = None) -> None:
        self.teacher = teacher

    def _readers(self) -> dict[str, Any]:
        return {"estimator": self.teacher}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = input_tags(self.teacher)
        return tags


def cast_votes(
    estimator: Any,
    X: Any,
    y: Any,
    X_public: Any,
    *,
    classes: ArrayLike,
    shard: int,
    seed: int = 0,
) -> NDArray[np.signedinteger]:
    """Train one teacher on the rows of one shard, and return only its votes.

    Call the function where the rows are stored: on a worker of Spark, Ray or dask, or
    in a hospital. The fitted teacher is deleted, and its printed output, logs and
    warnings are suppressed.

    Parameters
    ----------
    estimator : classifier
        The teacher, unfitted, as in :class:`~sklearn_pate.PATEClassifier`.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        All rows of the shard and no other rows. May be empty. Keep the rows in the same
        order in all runs, as many classifiers depend on the order of rows.

    y : array-like of shape (n_rows,)
        Labels of the rows of X. A row whose label is not in `classes` is dropped.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features)
        Public rows. All shards must use these rows.

    classes : array-like of shape (n_classes,)
        All labels that count as votes, chosen independently of the data.

    shard : int
        Number of the shard, from :func:`shard_of`.

    seed : int, default=0
        Seed from which each teacher gets its own seed. May be public. A fit of
        PATEClassifier with ``random_state=seed``, ``representation=None`` and
        ``vote="plain"`` has the same votes, if the key of the shards is `seed`.

    Returns
    -------
    votes : ndarray of int of shape (n_public,)
        Class indices, or -1 for an abstention, as int8 for up to 128 classes. A teacher
        without rows abstains. **Sensitive**: only a mechanism may publish votes, see
        :meth:`Votes.from_shards <sklearn_pate.Votes.from_shards>`.

    Raises
    ------
    ValueError
        If a parameter cannot be used, or X, y and `X_public` have inconsistent shapes.
        Private values never cause the error.

    Warns
    -----
    TeacherWarning
        If the teacher failed, and so abstains. The message is sensitive, and names only
        the type of the error.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate.distributed import cast_votes, shard_of
    >>> X, y = make_blobs(1000, centers=2, random_state=0)
    >>> patients = range(900)
    >>> in_shard = shard_of(patients, 10, key=0) == 3
    >>> cast_votes(
    ...     GaussianNB(), X[:900][in_shard], y[:900][in_shard], X[995:],
    ...     classes=[0, 1], shard=3,
    ... )
    array([1, 1, 1, 0, 0], dtype=int8)
    """
    check_cloneable("estimator", estimator)
    check_count("shard", shard, 0)
    check_count("seed", seed, 0, 2**64 - 1)
    known = check_classes(classes)
    X_public = public_table(X_public)
    features = _Features(estimator)
    X_public = check_public_features(features, X_public)
    form = VoteForm(len(known))
    if np.shape(X)[:1] == (0,):
        return form.constant(-1, X_public.shape[0])
    X = check_features(features, X, reset=False, private=True)
    X = read_like_public(X, X_public, refuse=False)
    codes = PrivateRows.read(X, y, classes=known).codes
    rows = np.flatnonzero(codes >= 0)
    [teacher_seed] = teacher_seeds(seed, np.array([shard]))
    task = Shard(shard, rows_of(X, rows), codes[rows], teacher_seed)
    poll = Poll.by_this_thread(on_labels("estimator", estimator, known), form, X_public)
    with one_thread():
        [result] = train_shards(poll, [task])
    if result.failure is not None:
        kind = result.failure.removeprefix(ON_PUBLIC_ROWS).partition(":")[0]
        warn_user(
            f"The teacher of shard {shard} failed and abstains ({kind}; this is "
            "sensitive). Try estimator.fit on these rows.",
            TeacherWarning,
        )
    if result.contribution is None:
        return form.constant(-1, X_public.shape[0])
    return cast(NDArray[np.signedinteger], result.contribution)
