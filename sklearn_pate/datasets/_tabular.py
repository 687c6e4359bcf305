"""Tables: UCI Adult and Diabetes."""

import csv
import io
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklearn_pate.accounting._value_checks import check_option
from sklearn_pate.datasets._files import DataFile, Table, read_data_file

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
_ADULT_NUMERIC = {
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
}
_ADULT = """UCI Adult (census income), B. Becker and R. Kohavi, 1996, CC BY 4.0.

48842 rows, 14 features: 32561 training rows (adult.data), then 16281 test rows
(adult.test). The target is "<=50K" or ">50K". Missing categories are "?".

Without as_frame, each category is replaced by an integer, as in the experiments of
Papernot et al. (2017). Their order is not known; here it is that of first appearance in
the file, with which the privacy cost of votes is about that of the published votes.
"""
_FILE = DataFile(
    "diabetes130",
    "diabetic_data.csv",
    "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97",
    (
        "https://archive.ics.uci.edu/static/public/296/"
        "diabetes+130-us+hospitals+for+years+1999-2008.zip",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00296/"
        "dataset_diabetes.zip",
    ),
)
_DIABETES_NUMERIC = {
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
}
_NOT_FEATURES = {"encounter_id", "patient_nbr", "readmitted"}
_DIABETES = """UCI Diabetes 130-US hospitals 1999-2008, Strack et al., 2014, CC BY 4.0.

101766 encounters of 71518 patients, 47 features. The target is the original one:
"NO", ">30" or "<30" (readmitted within 30 days). Missing categories are "?".

`groups` is the patient number. Many patients have several encounters: pass it as
groups= to a PATEClassifier with privacy_unit="group", and keep the patients of training
and test rows apart.

Without as_frame, each category is replaced by an integer, in the order of first
appearance in the file.
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

    The task is to predict which people earn more than 50,000 dollars a year. The data
    are from a census of the USA in 1994, with one row per person. The rows are public,
    so a fit that treats the rows as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    subset : {"all", "train", "test"}, default="all"
        Part of the original split. "all" is the 32561 training rows followed by the
        16281 test rows.

    download_if_missing : bool, default=True
        Whether to download a missing file.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    as_frame : bool, default=False
        Return a pandas DataFrame with the original categories, instead of an array in
        which categories are integers.

    Returns
    -------
    adult : Bunch
        ``data`` of shape (n_rows, 14), dtype float64, or a frame. ``target`` of shape
        (n_rows,), with labels "<=50K" and ">50K". ``categories``, a dict: category k of
        a feature is the integer k in ``data``. ``feature_names``, ``target_names``,
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
    hybrid". Papernot et al. (2017, Appendix C; 2018) use this data set.

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
    check_option("subset", subset, ("all", "train", "test"))
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
    table = Table(dict(zip(_FEATURES, features, strict=True)), _ADULT_NUMERIC)
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
        DESCR=_ADULT,
    )


def _rows(content: bytes) -> list[list[str]]:
    lines = (line.strip() for line in io.StringIO(content.decode()))
    # adult.test begins with a comment, and its labels end in a dot.
    return [
        line.rstrip(".").split(", ")
        for line in lines
        if line and not line.startswith("|")
    ]


def fetch_diabetes130(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load UCI Diabetes 130-US hospitals, downloading it if necessary.

    The task is to predict which patients with diabetes are readmitted within 30 days.
    Each row is a stay in a hospital of the USA between 1999 and 2008. As many patients
    have several stays, use the patient as the unit of privacy, with
    ``privacy_unit="group"``. The rows are public, so a fit that treats the rows as
    private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    download_if_missing : bool, default=True
        Whether to download a missing file.

    return_X_y : bool, default=False
        Return ``(data, target)``, without groups, instead of a Bunch.

    as_frame : bool, default=False
        Return a pandas DataFrame with the original categories, instead of an array in
        which categories are integers.

    Returns
    -------
    diabetes : Bunch
        ``data`` of shape (101766, 47), dtype float64, or a frame. ``target`` of shape
        (101766,), with labels "NO", ">30" and "<30". ``groups`` of shape (101766,),
        dtype int64: the patient of each row. ``categories``, a dict: category k of a
        feature is the integer k in ``data``. ``feature_names``, ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If the file is missing and cannot be downloaded, or has a wrong hash.

    Notes
    -----
    Strack, DeShazo, Gennings, Olmo, Ventura, Cios, Clore (2014), "Impact of HbA1c
    measurement on hospital readmission rates". Papernot et al. (2017, Appendix C) use a
    subset with two balanced classes.

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_diabetes130
    >>> diabetes = fetch_diabetes130()  # doctest: +SKIP
    >>> diabetes.data.shape  # doctest: +SKIP
    (101766, 47)
    >>> len(set(diabetes.groups.tolist()))  # doctest: +SKIP
    71518
    >>> back_soon = diabetes.target == "<30"  # doctest: +SKIP
    >>> round(float(back_soon.mean()), 3)  # doctest: +SKIP
    0.112
    """
    content = read_data_file(
        _FILE, data_home=data_home, download_if_missing=download_if_missing
    )
    rows = csv.reader(io.StringIO(content.decode()))
    header = next(rows)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    feature_names = [name for name in header if name not in _NOT_FEATURES]
    target = np.array(columns["readmitted"])
    groups = np.array(columns["patient_nbr"], dtype=np.int64)
    table = Table({name: columns[name] for name in feature_names}, _DIABETES_NUMERIC)
    if as_frame:
        import pandas as pd

        data, target = table.to_frame(), pd.Series(target, name="readmitted")
    else:
        data = table.to_array()
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        groups=groups,
        feature_names=feature_names,
        categories=table.categories,
        target_names=["NO", ">30", "<30"],
        DESCR=_DIABETES,
    )
