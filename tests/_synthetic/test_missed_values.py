"""Warnings, after a release, of private values that a domain misses."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyUtilityWarning,
    PrivateMarginals,
)
from sklearn_pate.learners import DPNaiveBayesClassifier
from tests.cases import thorough_but
from tests.private import MarginalCounts, count_cells

N_ROWS = 4000
DOMAIN = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 100_000),
    "hours-per-week": (1, 99),
    "sex": ["Female", "Male"],
    "native": [False, True],
}


@pytest.fixture(scope="module")
def adult(data_set):
    """Rows of Adult, most of which have no capital gain."""
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    X = X[:N_ROWS].assign(native=X["native-country"] == "United-States")
    X = X[list(DOMAIN)].astype({"sex": str})
    return X, (y[:N_ROWS] == ">50K").to_numpy().astype(int)


FITS = {
    "naive Bayes": lambda domain: DPNaiveBayesClassifier(domain),
    "naive Bayes of groups": lambda domain: DPNaiveBayesClassifier(
        domain, privacy_unit="group", classes=[0, 1]
    ),
    "Newton": lambda domain: DPNewtonClassifier(synthetic=PrivateMarginals(domain)),
    "Newton, not by class": lambda domain: DPNewtonClassifier(
        synthetic=PrivateMarginals(domain, by_class=False)
    ),
    "PATE": lambda domain: PATEClassifier(
        n_teachers=20,
        epsilon=4.0,
        synthetic=PrivateMarginals(domain, share=0.5),
        mechanism="scores",
    ),
}


def warnings_of(kind, adult, domain=None, **changes):
    """Return the warnings of a fit on changed columns."""
    X, y = adult
    X = X.assign(**{name: change(X[name]) for name, change in changes.items()})
    clf = FITS[kind](DOMAIN | (domain or {}))
    groups = {"groups": np.arange(len(y)) // 2} if "groups" in kind else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyUtilityWarning)
        clf.fit(X, y, **groups)
    return [str(one.message) for one in caught if one.category is PrivacyUtilityWarning]


def every_fifth(value):
    return lambda column: column.where(np.arange(len(column)) % 5 > 0, value)


MISSED = {
    "years for a range of (0, 1)": (
        {"age": (0, 1)},
        {},
        r"'age' \((9\d|100) % above the range\)",
    ),
    "a share for a range in percent": (
        {"age": (0.0, 100.0)},
        {"age": lambda column: column / 100},
        r"'age' \(\d+ % in the first of \d+ bins\)",
    ),
    "thousands": (
        {},
        {"age": lambda column: column * 1000},
        r"'age' \((9\d|100) % above the range\)",
    ),
    "standardised": (
        {},
        {"age": lambda column: (column - 38.0) / 14},
        r"'age' \((9\d|100) % below the range\)",
    ),
    "missing coded 999": (
        {},
        {"age": every_fifth(999)},
        r"'age' \((1\d|2\d) % above the range\)",
    ),
    "missing not declared": (
        {},
        {"age": every_fifth(np.nan)},
        r"'age' \((1\d|2\d) % without a declared value\)",
    ),
    "from 1 for from 0": (
        {"age": (1, 5)},
        {"age": lambda column: column % 5},
        r"'age' \((1\d|2\d) % below the range\)",
    ),
    "one other spelling": (
        {"sex": ["Female", "male"]},
        {},
        r"'sex' \((6\d|7\d) % without a declared value\)",
    ),
    "bool as text": (
        {"native": ["true", "false"]},
        {"native": lambda column: column.astype(str)},
        r"'native' \((9\d|100) % without a declared value\)",
    ),
    "decimal comma": (
        {"age": {"values": ["38.5", "39.5"]}},
        {"age": lambda column: (column + 0.5).astype(str).str.replace(".", ",")},
        r"'age' \((9\d|100) % without a declared value\)",
    ),
    "dates as text": (
        {},
        {"age": lambda column: pd.Series("1980-01-02", column.index, dtype=object)},
        r"'age' \((9\d|100) % without a declared value\)",
    ),
}


# All members for one learner, and one for the others.
ONE = "one other spelling"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("naive Bayes", one) for one in MISSED),
        ("Newton", ONE),
        *(
            pytest.param(kind, ONE, marks=pytest.mark.thorough)
            for kind in FITS
            if kind not in ("naive Bayes", "Newton")
        ),
    ],
)
def test_a_domain_that_misses_the_data_is_reported_with_its_columns(adult, kind, name):
    domain, changes, expected = MISSED[name]
    [text] = [one for one in warnings_of(kind, adult, domain, **changes) if "By" in one]
    assert re.search(f"misses values of the columns {expected}\\.", text)
    assert "compare spelling, units, types and missing values" in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", thorough_but(["naive Bayes", "Newton"], FITS))
def test_a_column_of_zeros_nearly_all_is_not_reported(adult, kind):
    assert not [one for one in warnings_of(kind, adult) if "By the released" in one]


@pytest.mark.slow
def test_swapped_columns_are_both_reported(adult):
    age, hours = adult[0]["age"] + 100, adult[0]["hours-per-week"]
    swapped = {"age": lambda column: hours, "hours-per-week": lambda column: age}
    domain = {"age": (100, 200)}
    [text] = warnings_of("naive Bayes", adult, domain, **swapped)
    assert "'age' (" in text
    assert "'hours-per-week' (" in text


def test_labels_that_are_no_class_are_reported(adult):
    X, y = adult
    labels = np.array(["alive", "died"])[y]
    labels[::3] = "Died"
    clf = DPNaiveBayesClassifier(DOMAIN, classes=["alive", "died"])
    with pytest.warns(PrivacyUtilityWarning, match=r"3\d % of the rows have a label"):
        clf.fit(X, labels)


def test_the_report_depends_on_released_counts_alone(adult, monkeypatch):
    X, y = adult
    domain = DPNaiveBayesClassifier(DOMAIN)._plan(X, y).domain
    counts = count_cells(domain, X, y, 2, by_class=True)
    monkeypatch.setattr(MarginalCounts, "release", lambda self, *exact: counts)
    DPNaiveBayesClassifier(DOMAIN).fit(X.assign(age=0, sex="male"), y)  # no warning
