"""Tests of neighbours of fits that release mean scores, and audits of the release."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PATEClassifier, PublicData, StudentWarning
from sklearn_pate.inspection import audit_mechanism
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.students import TableRepresentation
from tests.cases import thorough_but
from tests.private import LONGEST_CLASS, LONGEST_DIRECTION, LONGEST_VALUE, StoredSums
from tests.seeding import equal_noise


@pytest.fixture(scope="module")
def blobs():
    """Return private rows, labels and public rows of three classes."""
    X, y = make_blobs(5000, centers=3, cluster_std=1.2, random_state=0)
    return X[:4000], y[:4000], PublicData(X[4000:4400])


def make(estimator=None, **parameters):
    given = {"n_teachers": 20, "mechanism": "scores", "classes": [0, 1, 2]}
    given |= {"epsilon": 4.0, "random_state": 0}
    return PATEClassifier(estimator, **given | parameters)


def exact_sums(monkeypatch, blobs, X, y, **fit_params):
    """Return the sums of a fit before their noise, which is the same in all fits.

    The noise hides every change, so that later steps are asked the same.
    """
    totals = []

    def kept(self, number, total):
        totals.append(np.asarray(total(), dtype=np.int64).ravel())
        released = np.random.RandomState(number).randint(200, 300, len(totals[-1]))
        return 1000 * released if number == 0 else released

    unit = "group" if fit_params else "row"
    with monkeypatch.context() as patch, equal_noise():
        patch.setattr(StoredSums, "draw", kept)
        make(privacy_unit=unit).fit(X, y, X_public=blobs[2], **fit_params)
    assert len(totals) == MeanScores.n_steps
    return totals


def squared_moves(before, after):
    moves = [int(np.vdot(a - b, a - b)) for a, b in zip(after, before, strict=True)]
    distances = [2 * LONGEST_CLASS**2, 4 * LONGEST_DIRECTION**2, 4 * LONGEST_VALUE**2]
    assert np.all(np.array(moves) <= distances)
    return moves


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    thorough_but(["row", "missing"], ["label", "row", "missing", "infinite", "huge"]),
)
def test_a_replaced_row_moves_each_sum_within_its_share(monkeypatch, blobs, change):
    X, y = blobs[0][:600], blobs[1][:600]
    other_X, other_y = X.copy(), y.copy()
    if change == "label":
        other_y[3] = (y[3] + 1) % 3
    else:
        values = {"row": -X[3], "missing": np.nan, "infinite": -np.inf, "huge": 1e308}
        other_X[3] = values[change]
    before, after = (
        exact_sums(monkeypatch, blobs, *data) for data in ((X, y), (other_X, other_y))
    )
    moves = squared_moves(before, after)
    assert (moves[0] > 0) == (change == "label")
    assert moves[1] > 0
    assert moves[2] > 0
    if change == "missing":  # the default representation fills in the missing values
        return
    # One teacher alone: every other one has the same vector, to the last bit.
    rest = [exact_sums(monkeypatch, blobs, X, y)[1] for _ in range(2)]
    assert_array_equal(*rest)


@pytest.mark.slow
def test_a_group_moves_each_sum_within_its_share(monkeypatch, blobs):
    X, y = blobs[0][:600], blobs[1][:600]
    groups = np.arange(600) // 3
    stays = groups != 0  # its rows are the first, so that all others move
    changed = np.where(groups[:, np.newaxis] == 0, np.inf, X)
    group, left, other = (
        exact_sums(monkeypatch, blobs, X_of[kept], y[kept], groups=groups[kept])
        for X_of, kept in ((X, stays | True), (X, stays), (changed, stays | True))
    )
    assert squared_moves(left, group)[0] <= LONGEST_CLASS**2
    assert abs(group[2] - left[2]) <= LONGEST_VALUE
    assert np.all(group[0] >= left[0])
    squared_moves(group, other)


def test_no_warning_depends_on_private_rows(monkeypatch, blobs):
    X, y = blobs[0][:600].copy(), blobs[1][:600]
    X[5], X[6], X[7] = 1e308, -np.inf, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", StudentWarning)  # of the sums that are noise
        exact_sums(monkeypatch, blobs, X, y)


def test_a_class_of_all_private_rows_raises_no_error(blobs):
    # An error would reveal that no other class occurs.
    X, y, X_public = blobs
    clf = make()
    with pytest.warns(StudentWarning, match="predicts one class for all of 400 public"):
        clf.fit(X, np.zeros(len(y), dtype=int), X_public=X_public)


class Refusing(TransformerMixin, BaseEstimator):
    """Representation that refuses rows, prints, warns, and keeps what it has seen."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        if not np.all(np.isfinite(X)):
            raise ValueError(f"refused: {X}")
        print("seen:", len(X))
        warnings.warn(f"seen: {X}", stacklevel=2)
        self.seen_ = X
        return X - self.mean_


@pytest.mark.slow
def test_a_representation_reveals_nothing_of_a_private_row(monkeypatch, blobs, capsys):
    X, y = blobs[0][:600].copy(), blobs[1][:600]
    X[4], X[5] = 77777, np.nan
    clf = make(LogisticRegression(), representation=Refusing(), n_jobs=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, y, X_public=blobs[2])
    printed = capsys.readouterr()
    shown = [printed.out, printed.err, *(str(one.message) for one in caught)]
    assert not [one for one in shown if "77777." in one]
    # All public rows, and some of them alone, to measure the time of a private one.
    assert len(printed.out.splitlines()) < 20
    assert np.all(np.isin(clf.representation_.seen_, blobs[2].X))
    codes = {one.code for one in clf.privacy_spent_.assumptions}
    assert {"representation-public", "representation-row-alone"} <= codes


@pytest.mark.slow
def test_a_representation_of_this_package_needs_no_assumption_on_rows(blobs):
    X, y, X_public = blobs
    clf = make(representation=TableRepresentation()).fit(X, y, X_public=X_public)
    codes = {one.code for one in clf.privacy_spent_.assumptions}
    assert "representation-row-alone" not in codes


# Audits: planted defects are found


ONE = np.array([[5.0], [0.0], [0.0]])


def audited(n_trials=1500):
    # At a large delta, few trials show a defect.
    return audit_mechanism(
        MeanScores(noise_scale=1.5), ONE, -ONE, n_trials=n_trials, delta=0.09
    )


@pytest.mark.thorough
def test_the_honest_mechanism_passes_its_audit():
    result = audited(n_trials=6000)
    assert not result.contradicted
    assert result.epsilon_lower > 0.5 * result.epsilon_claimed


@pytest.mark.thorough
def test_a_step_that_is_not_charged_is_found(monkeypatch):
    honest = MeanScores._squared_distance
    monkeypatch.setattr(
        MeanScores, "_squared_distance", lambda self, n: 0.3 * honest(self, n)
    )
    assert audited().contradicted


def longer(monkeypatch, name, factor):
    """Let an exact sum of the audit be several times as long."""
    from tests.private import _audits

    honest = getattr(_audits, name)
    monkeypatch.setattr(_audits, name, lambda *one: factor * honest(*one))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["direction_vector", "sum_of_classes"])
def test_a_vector_that_is_too_long_is_found(monkeypatch, name):
    from tests.private import _votes

    monkeypatch.setattr(_votes, "is_direction", lambda vector: True)
    longer(monkeypatch, name, 2 if name == "direction_vector" else 200)
    assert audited().contradicted


@pytest.mark.thorough
def test_a_vector_that_is_too_long_adds_nothing(monkeypatch):
    longer(monkeypatch, "direction_vector", 2)
    result = audited()
    assert not result.contradicted
    assert result.epsilon_lower < 0.5 * result.epsilon_claimed


@pytest.mark.thorough
def test_a_teacher_that_is_counted_twice_is_found(monkeypatch):
    from tests.private import TeacherScores

    one = TeacherScores.sum
    monkeypatch.setattr(TeacherScores, "sum", lambda self: 2 * one(self))
    assert audited().contradicted


@pytest.mark.thorough
def test_a_value_that_is_not_clipped_is_found(monkeypatch):
    from tests.private import _audits

    monkeypatch.setattr(_audits, "LONGEST_VALUE", 10 * LONGEST_VALUE)
    assert audited().contradicted
