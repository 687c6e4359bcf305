"""What leaves a measurement is equal on neighbouring data if noisy counts are fixed.

Then it is a function of released and of public numbers: which subgroups and labels
occur shows nowhere.
"""

import functools
import io
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_pate.learners import DPNaiveBayesClassifier
from sklearn_pate.metrics import PrivateMetrics, private_metrics
from sklearn_pate.model_selection import fit_and_measure
from tests.cases import thorough_but
from tests.metrics.exact_counts import Touchy, columns
from tests.private import LABEL_SET_READ, MarginalCounts, _estimates

N_ROWS = 40
GROUPS = np.array([f"p{row // 2:02}" for row in range(N_ROWS)], dtype=object)
BANDS = np.array(["young", "old", "old"], dtype=object)[np.arange(N_ROWS) % 3]
VALUES = ["old", "young", "never"]


def fixed_counts(self, counts, noise=None):
    """Release numbers that the shape of the counts alone determines."""
    size = np.size(counts)
    return np.random.RandomState(size).randint(-5, 60, size).reshape(np.shape(counts))


def plain(part):
    """Write a public object as values by name."""
    if isinstance(part, PrivateMetrics):
        values = {one.name: getattr(part, one.name) for one in fields(part)}
        more = {"by_subgroup": str(part.by_subgroup), "printed": str(part)}
        return values | more | {"privacy_spent_": str(part.privacy_spent_)}
    state = getattr(part, "__getstate__", dict)() or {}
    if "privacy_spent_" in state:
        return state | {"privacy_spent_": str(part.privacy_spent_)}
    return {"printed": str(part)}


def leaving(monkeypatch, call, *args, **parameters):
    """Return a hash of all that a call returns, prints and warns of, by its name."""
    printed = io.StringIO()
    with (
        monkeypatch.context() as patch,
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        # Which fits a process has made before is no part of a fit.
        warnings.filterwarnings("ignore", "2 fits of the same private rows")
        patch.setattr(MarginalCounts, "release", fixed_counts)
        patch.setattr(_estimates, "N_DRAWS", 200)  # of intervals, from these counts
        result = call(*args, **parameters)
    parts = [result] if isinstance(result, PrivateMetrics) else [*result]
    found = {
        (place, name): joblib.hash(value)
        for place, part in enumerate(parts)
        for name, value in plain(part).items()
    }
    texts = [str(one.message) for one in caught]
    return found | {"texts": joblib.hash([*texts, printed.getvalue()])}


def data():
    """Return rows, labels, groups and subgroups."""
    X, y = columns(n_rows=N_ROWS)
    return X, y, GROUPS.copy(), BANDS.copy()


def changed(X=None, y=None, groups=None, bands=None, *, rows=(0, 1)):
    """Return data with other values in some rows, which are one group."""
    changes = X, y, groups, bands
    parts = data()
    for part, change in zip(parts, changes, strict=True):
        if change is not None:
            for row in rows:
                part[row] = change[0]
    return parts


OF_ROWS = {
    "a rare subgroup": {"bands": ["rare"]},
    "a missing subgroup": {"bands": [None]},
    "a subgroup that is NaN": {"bands": [np.nan]},
    "a subgroup of another type": {"bands": [7]},
    "a subgroup that cannot be looked up": {"bands": [["old"]]},
    "the only row of a declared subgroup": {"bands": ["never"]},
    "a rare label": {"y": ["rare"]},
    "a missing label": {"y": [None]},
    "a row that the model cannot score": {"X": [np.nan]},
    "a huge value": {"X": [1e300]},
}
OF_GROUPS = OF_ROWS | {"no id": {"groups": [None]}}
BY_BAND = {"subgroup_values": VALUES, "epsilon": 1.0, "random_state": 0}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_GROUPS)
def test_private_metrics_do_not_show_which_values_occur(kind, monkeypatch):
    def released(X, y, groups, bands, by_group):
        groups = {"groups": groups} if by_group else {}
        given = {"subgroups": bands} | groups | BY_BAND
        return leaving(monkeypatch, private_metrics, Touchy(), X, y, **given)

    assert released(*data(), True) == released(*changed(**OF_GROUPS[kind]), True)
    if kind in OF_ROWS:
        after = changed(**OF_ROWS[kind], rows=[0])
        assert released(*data(), False) == released(*after, False)


@pytest.mark.slow
def test_a_group_that_leaves_takes_no_subgroup_with_it(monkeypatch):
    X, y, groups, bands = data()
    bands[:2] = "rare"
    given = {"subgroups": bands, "groups": groups}
    less = {name: values[2:] for name, values in given.items()}
    before = leaving(monkeypatch, private_metrics, Touchy(), X, y, **given, **BY_BAND)
    X, y = X[2:], y[2:]
    after = leaving(monkeypatch, private_metrics, Touchy(), X, y, **less, **BY_BAND)
    assert before == after


CONTAINERS = {
    "list": list,
    "objects": lambda bands: bands,
    "text": lambda bands: bands.astype(str),
    "pandas": lambda bands: pd.Series(bands, index=np.arange(len(bands))[::-1]),
    "pandas text": lambda bands: pd.Series(bands, dtype="string"),
    "categories": lambda bands: pd.Series(bands).astype("category"),
    "column": lambda bands: pd.DataFrame({"band": bands}),
    "polars": lambda bands: pl.Series(bands.tolist()),
    "polars categories": lambda bands: pl.Series(bands.tolist(), dtype=pl.Categorical),
}


@pytest.mark.slow
@pytest.mark.parametrize("container", CONTAINERS)
def test_subgroups_are_read_alike_in_any_container(container, monkeypatch):
    X, y, _, bands = data()
    _, _, _, rare = changed(bands=["rare"], rows=[0])
    held = CONTAINERS[container]
    before, after, objects = (
        leaving(monkeypatch, private_metrics, Touchy(), X, y, subgroups=one, **BY_BAND)
        for one in (held(bands), held(rare), bands)
    )
    assert before == after == objects
    monkeypatch.setattr(MarginalCounts, "release", lambda self, counts, noise: counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = private_metrics(Touchy(), X, y, subgroups=held(rare), **BY_BAND)
    assert exact.subgroups_ == [*VALUES, "other or missing"]
    assert exact.confusion_.sum(axis=1).tolist() == [26, 13, 0, 1]


@pytest.mark.thorough
@pytest.mark.parametrize("by_group", thorough_but([True], [False, True]))
def test_a_measured_fit_does_not_show_which_values_occur(by_group, monkeypatch):
    """In the part that is fitted on, and in the part that is measured."""
    learner = DPNaiveBayesClassifier(
        {0: (-3, 3), 1: (-3, 3)}, classes=[0, 1], random_state=0
    )
    learner.set_params(privacy_unit="group" if by_group else "row")

    def released(X, y, groups, bands):
        groups = {"groups": groups} if by_group else {}
        given = {"subgroups": bands, "subgroup_values": VALUES, "random_state": 0}
        given["test_size"] = 0.5
        return leaving(monkeypatch, fit_and_measure, learner, X, y, **given, **groups)

    fitted_on, fit = [], DPNaiveBayesClassifier.fit

    @functools.wraps(fit)
    def spy(self, X, *args, **given):
        fitted_on.append({tuple(row) for row in X})
        return fit(self, X, *args, **given)

    with monkeypatch.context() as patch:
        patch.setattr(DPNaiveBayesClassifier, "fit", spy)
        before = released(*data())
    of_parts = (4, 6)  # a row of each part
    assert sum(tuple(data()[0][row]) in fitted_on[0] for row in of_parts) == 1
    for kind, change in (OF_GROUPS if by_group else OF_ROWS).items():
        for row in of_parts:
            rows = [row, row + 1] if by_group else [row]
            assert released(*changed(**change, rows=rows)) == before, (kind, row)


WRONG = {
    "none": None,
    "an empty list": [],
    "one text": "old",
    "a set": {"old", "young"},
    "two columns": [["old", "young"]],
    "a value twice": ["old", "old"],
    "a number and its text": [1, "1"],
    "equal numbers": [1, True],
    "a missing value": ["old", None],
    "NaN": [1.0, np.nan],
    "a date": [pd.Timestamp("2026-01-01")],
    "the name of the others": ["old", "other or missing"],
    "text that cannot be printed": ["old\n"],
}


@pytest.mark.parametrize("kind", WRONG)
def test_subgroups_need_declared_values(kind, monkeypatch):
    def fails(*args):
        raise AssertionError("it scored a row or was fitted")

    monkeypatch.setattr(Touchy, "predict_proba", fails)
    monkeypatch.setattr(DPNaiveBayesClassifier, "fit", fails)
    X, y, _, bands = data()
    given = {"subgroups": bands, "subgroup_values": WRONG[kind]}
    for call in (
        lambda: private_metrics(Touchy(), X, y, epsilon=1.0, **given),
        lambda: fit_and_measure(DPNaiveBayesClassifier(), X, y, **given),
    ):
        with pytest.raises(ValueError, match=r"must list the possible .* without a lo"):
            call()


def test_subgroups_of_a_type_that_no_value_has_are_refused():
    X, y, _, bands = data()
    given = {"subgroups": bands.astype(str), "subgroup_values": [1, 2]}
    with pytest.raises(ValueError, match=r"subgroups can be in subgroup_values=\[1, 2"):
        private_metrics(Touchy(), X, y, epsilon=1.0, **given)


@pytest.mark.parametrize("values", [[1, 2.5], np.array(["a", "b"]), pd.Index(["a"])])
def test_values_of_subgroups_may_be_in_any_container(values, monkeypatch):
    X, y, _, _ = data()
    given = {"subgroups": [None] * N_ROWS, "subgroup_values": values}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = private_metrics(Touchy(), X, y, epsilon=1.0, **given)
    assert metrics.subgroups_ == [*values, "other or missing"]


@pytest.mark.slow
@pytest.mark.parametrize("by_group", [False, True])
def test_classes_of_a_measured_fit_are_those_of_all_rows(by_group):
    """Wherever the only row of a class is; a row without an id adds none."""
    learner = DPNaiveBayesClassifier({0: (-3, 3), 1: (-3, 3)}, random_state=0)
    learner.set_params(privacy_unit="group" if by_group else "row")
    X, y, groups, _ = data()
    for row in range(0, 12, 2):
        labels, ids = y.astype(int), groups.copy()
        labels[row], labels[row + 1], ids[row + 1] = 7, 9 if by_group else 7, None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, metrics, spent = fit_and_measure(
                learner, X, labels, **({"groups": ids} if by_group else {})
            )
        assert model.classes_.tolist() == metrics.classes_.tolist() == [0, 1, 7]
        assert LABEL_SET_READ in spent.assumptions
        assert LABEL_SET_READ in model.privacy_spent_.assumptions
