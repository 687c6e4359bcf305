"""UCI Adult: people who earn more than 50,000 dollars a year."""

import io
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklearn_pate.datasets._files import DataFile, read_data_file
from sklearn_pate.datasets._tables import Table

__all__ = ["fetch_adult"]

_ARCHIVES = (
    "https://archive.ics.uci.edu/static/public/2/adult.zip",
    "https://cdn.uci-ics-mlr-prod.aws.uci.edu/2/adult.zip",
)
_TRAIN = DataFile(
    "adult",
    "adult.data",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
        *_ARCHIVES,
    ),
)
_TEST = DataFile(
    "adult",
    "adult.test",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
        *_ARCHIVES,
    ),
)
_FEATURES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
]
_NUMERIC = {
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
}
_DESCR = """UCI Adult (census income), B. Becker and R. Kohavi, 1996, CC BY 4.0.

48842 rows, 14 features: 32561 training rows (adult.data), then 16281 test rows
(adult.test). The target is "<=50K" or ">50K". Missing categories are "?".

Without as_frame, each category is replaced by an integer, as in the experiments of
Papernot et al. (2017). Their order is not known; here it is that of first appearance in
the file, with which the privacy cost of votes is about that of the published votes.
"""


def fetch_adult(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "all",
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load UCI Adult, downloading it if necessary.

    The task is to predict which people earn more than 50,000 dollars a year, from a
    census of the USA in 1994 with one row per person. The rows are public: a fit that
    treats them as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None means that of the environment variable
        ``SKLEARN_PATE_DATA``, or else ``sklearn_pate`` in
        ``sklearn.datasets.get_data_home()``.

    subset : {"all", "train", "test"}, default="all"
        The original split; "all" is the 32561 training rows followed by the 16281 test
        rows.

    download_if_missing : bool, default=True
        Whether a missing file is downloaded.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    as_frame : bool, default=False
        Return a pandas DataFrame with the original categories, instead of an array in
        which categories are integers.

    Returns
    -------
    adult : Bunch
        ``data`` of shape (n_rows, 14), dtype float64 (or a frame of int64 and
        categorical columns), ``target`` of shape (n_rows,) with labels "<=50K" and
        ">50K", ``feature_names``, ``categories`` (a dict of the categories of each
        categorical feature, in the order of their integers), ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded, or has a wrong hash.

    ValueError
        If `subset` is unknown.

    Notes
    -----
    Kohavi (1996), "Scaling up the accuracy of naive-Bayes classifiers: a decision-tree
    hybrid". One of the data sets of Papernot et al. (2017, Appendix C; 2018).

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_adult
    >>> adult = fetch_adult(subset="train")  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (32561, 14)
    >>> adult.target[:3]  # doctest: +SKIP
    array(['<=50K', '<=50K', '<=50K'], dtype='<U5')
    >>> X, y = fetch_adult(return_X_y=True, as_frame=True)  # doctest: +SKIP
    >>> X.loc[0, "workclass"]  # doctest: +SKIP
    'State-gov'
    """
    if subset not in ("all", "train", "test"):
        raise ValueError(f"subset={subset!r} is unknown; use 'all', 'train' or 'test'.")
    train, test = (
        _rows(
            read_data_file(
                file, data_home=data_home, download_if_missing=download_if_missing
            )
        )
        for file in (_TRAIN, _TEST)
    )
    # Codes come from both parts, so that they are the same in each subset.
    *features, labels = zip(*train, *test, strict=True)
    table = Table(dict(zip(_FEATURES, features, strict=True)), _NUMERIC)
    kept = {
        "all": slice(None),
        "train": slice(len(train)),
        "test": slice(len(train), None),
    }[subset]
    target = np.array(labels)[kept]
    if as_frame:
        import pandas as pd

        data = table.to_frame()[kept].reset_index(drop=True)
        target = pd.Series(target, name="income")
    else:
        data = table.to_array()[kept]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(_FEATURES),
        categories=table.categories,
        target_names=["<=50K", ">50K"],
        DESCR=_DESCR,
    )


def _rows(content: bytes) -> list[list[str]]:
    lines = (line.strip() for line in io.StringIO(content.decode()))
    # adult.test begins with a comment, and its labels end in a dot.
    return [
        line.rstrip(".").split(", ")
        for line in lines
        if line and not line.startswith("|")
    ]
