"""Warning of a second fit of the same rows without a ledger."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from sklearn_pate import PrivacyLeakWarning, PrivacyLedger
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.model_selection import PrivateSearchCV, fit_and_measure
from tests.private import _entry, fit_without_ledger

X = np.random.RandomState(0).uniform(size=(300, 2))
Y = (X[:, 0] > 0.5).astype(int)
CLF = DPLogisticRegression(feature_bounds=(0, 1), classes=[0, 1])


@pytest.fixture(autouse=True)
def no_fits_so_far(monkeypatch):
    monkeypatch.setattr(_entry, "_FITS", type(_entry._FITS)())


def warned(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [one for one in caught if "no ledger" in str(one.message)]


def test_a_second_fit_of_the_same_rows_is_reported_once():
    assert not warned(lambda: CLF.fit(X, Y))
    [one] = warned(lambda: [CLF.fit(X, Y) for _ in range(3)])
    assert one.category is PrivacyLeakWarning
    assert str(one.message).startswith("2 fits of the same private rows")
    assert not warned(lambda: CLF.fit(X, Y))


def test_other_rows_or_a_ledger_are_not(tmp_path):
    assert not warned(lambda: [CLF.fit(X, Y), CLF.fit(X[1:], Y[1:]), CLF.fit(X, 1 - Y)])
    ledger = PrivacyLedger(tmp_path / "ledger.json", epsilon=9, delta=1e-5)
    clf = DPLogisticRegression(**CLF.get_params() | {"ledger": ledger})
    assert not warned(lambda: [clf.fit(X, Y), clf.fit(X, Y)])


def test_measured_fits_with_a_ledger_are_not(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=9, delta=1e-5)

    def measured(**parameters):
        for _ in range(2):
            fit_and_measure(CLF, X, Y, random_state=0, **parameters)

    assert not warned(lambda: measured(ledger=ledger))
    assert len(warned(measured)) == 1


def test_a_search_without_a_ledger_is_reported_once():
    search = GridSearchCV(CLF, {"epsilon": [0.5, 1.0]}, cv=3)
    assert len(warned(lambda: search.fit(X, Y))) == 1


@pytest.mark.thorough
def test_a_private_search_and_an_audit_are_not():
    search = PrivateSearchCV(CLF, {"C": [0.5, 1.0]}, random_state=0)
    assert not warned(lambda: search.fit(X, Y))
    assert not warned(lambda: [fit_without_ledger(CLF, X=X, y=Y) for _ in range(2)])


def test_no_row_is_kept():
    CLF.fit(X, Y)
    [(name, n_fits)] = _entry._FITS.items()
    assert (len(name), n_fits) == (64, 1)
