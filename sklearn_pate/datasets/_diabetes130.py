"""UCI Diabetes 130-US hospitals: patients readmitted within 30 days."""

import csv
import io
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklearn_pate.datasets._files import DataFile, read_data_file
from sklearn_pate.datasets._tables import Table

__all__ = ["fetch_diabetes130"]

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
_NUMERIC = {
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
_DESCR = """UCI Diabetes 130-US hospitals 1999-2008, Strack et al., 2014, CC BY 4.0.

101766 encounters of 71518 patients, 47 features. The target is the original one:
"NO", ">30" or "<30" (readmitted within 30 days). Missing categories are "?".

`groups` is the patient number. Many patients have several encounters: pass it as
groups= to a PATEClassifier with privacy_unit="group", and keep the patients of training
and test rows apart.

Without as_frame, each category is replaced by an integer, in the order of first
appearance in the file.
"""


def fetch_diabetes130(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load UCI Diabetes 130-US hospitals, downloading it if necessary.

    The task is to predict which patients are readmitted within 30 days, from stays of
    patients with diabetes in hospitals of the USA from 1999 to 2008, with one row per
    stay. As many patients have several stays, the unit of privacy is the patient,
    ``privacy_unit="group"``. The rows are public: a fit that treats them as private is
    a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None means that of the environment variable
        ``SKLEARN_PATE_DATA``, or else ``sklearn_pate`` in
        ``sklearn.datasets.get_data_home()``.

    download_if_missing : bool, default=True
        Whether a missing file is downloaded.

    return_X_y : bool, default=False
        Return ``(data, target)``, without groups, instead of a Bunch.

    as_frame : bool, default=False
        Return a pandas DataFrame with the original categories, instead of an array in
        which categories are integers.

    Returns
    -------
    diabetes : Bunch
        ``data`` of shape (101766, 47), dtype float64 (or a frame of int64 and
        categorical columns), ``target`` of shape (101766,) with labels "NO", ">30" and
        "<30", ``groups`` of shape (101766,), dtype int64, the patient of each row,
        ``feature_names``, ``categories`` (a dict of the categories of each
        categorical feature, in the order of their integers), ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If the file is missing and cannot be downloaded, or has a wrong hash.

    Notes
    -----
    Strack, DeShazo, Gennings, Olmo, Ventura, Cios, Clore (2014), "Impact of HbA1c
    measurement on hospital readmission rates". Papernot et al. (2017, Appendix C) use a
    part of it, balanced between two classes.

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
    table = Table({name: columns[name] for name in feature_names}, _NUMERIC)
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
        DESCR=_DESCR,
    )
