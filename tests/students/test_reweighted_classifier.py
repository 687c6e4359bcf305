"""A student whose mean probabilities are released shares."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import LabelSpreading
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    PATEClassifier,
    PublicData,
)
from sklearn_pate.students import ReweightedClassifier
from tests._aggregation.balanced_fits import (
    X_PUBLIC,
    X,
    Y,
    counts_of,
    fit,
)
from tests.private import class_probabilities

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
]


STUDENTS = [
    None,
    LogisticRegression(),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(10, random_state=0),
    GaussianNB(),
]


@pytest.mark.slow
@pytest.mark.parametrize("student", STUDENTS, ids=repr)
def test_the_mean_over_public_rows_is_the_released_share(student):
    fitted = fit(student=student)
    assert isinstance(fitted.student_, ReweightedClassifier)
    mean = fitted.predict_proba(X_PUBLIC).mean(axis=0)
    assert_allclose(mean, fitted.class_shares_, atol=1e-6)
    # Noise of five rows, of which six standard deviations are less than this.
    assert_allclose(fitted.class_shares_, np.bincount(Y) / len(Y), atol=0.04)


@pytest.mark.slow
def test_shares_of_three_classes_of_which_one_is_in_no_shard():
    y = np.where(X[:, 1] > 1, 2, 0)
    fitted = fit(data=(X, y), classes=[0, 1, 2], epsilon=20.0)
    votes = counts_of(fitted).sum(axis=0)
    assert votes[1] == 0
    probabilities = fitted.predict_proba(X_PUBLIC)
    assert 1 not in fitted.student_.estimator_.classes_
    assert_allclose(probabilities[:, 1], fitted.class_shares_[1])
    assert_allclose(probabilities.mean(axis=0), fitted.class_shares_, atol=1e-4)


def test_a_row_without_probabilities_has_the_shares_of_others_alike():
    # Label propagation of a row that no labelled row is near.
    student = LabelSpreading(kernel="knn", n_neighbors=1)
    with np.errstate(invalid="ignore"):
        student.fit([[0.0], [0.1], [1.0], [1.1], [9.0], [9.1]], [0, 0, 1, 1, -1, -1])
        assert np.isnan(student.predict_proba([[9.0]])).all()
        fitted = ReweightedClassifier.with_shares(
            student,
            class_probabilities(student, np.array([[0.0], [1.0], [9.0]]), 2),
            np.array([0.9, 0.1]),
            slope=1.0,
            threshold="accuracy",
        )
        probabilities = fitted.predict_proba([[0.0], [1.0], [9.0]])
    assert_allclose(probabilities.mean(axis=0), [0.9, 0.1], atol=1e-6)
    assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.slow
def test_thresholds_are_those_of_other_classifiers():
    share = fit().class_shares_[1]

    def with_threshold(threshold):
        # Equal shares, as the seeded noise of tests differs from fit to fit.
        student = fit().student_.estimator_
        return ReweightedClassifier.with_shares(
            student,
            class_probabilities(student, X_PUBLIC, 2),
            np.array([1 - share, share]),
            slope=1.0,
            threshold=threshold,
        )

    auto, mean, half, own = map(with_threshold, ("auto", "balanced", "accuracy", 0.3))
    assert abs((auto.predict(X_PUBLIC) == 1).mean() - share) < 0.05
    assert mean.threshold == pytest.approx(share, abs=1e-6)
    assert half.threshold is None
    assert own.threshold == 0.3
    for one, cut in ((auto, auto.threshold), (mean, share), (half, 0.5), (own, 0.3)):
        positive = one.predict_proba(X_PUBLIC)[:, 1] > cut
        assert_array_equal(one.predict(X_PUBLIC), positive)
        assert_array_equal(one.decision_function(X_PUBLIC) > 0, positive)


@pytest.mark.parametrize("threshold", ["balanced", 0.3])
def test_a_fit_has_the_threshold_that_it_was_given(threshold):
    fitted = fit(threshold=threshold)
    wanted = fitted.class_shares_[1] if threshold == "balanced" else threshold
    assert fitted.student_.threshold == pytest.approx(wanted, abs=1e-6)
    positive = fitted.predict_proba(X_PUBLIC)[:, 1] > fitted.student_.threshold
    assert_array_equal(fitted.predict(X_PUBLIC), positive)


@pytest.mark.thorough
def test_a_rare_class_of_a_real_table_is_ranked(data_home):
    path = data_home / "tables" / "stroke.csv.gz"
    if not path.exists():
        pytest.skip("tables of benchmarks are not downloaded")
    table = pd.read_csv(path)
    X, y = table.drop(columns=["id", "stroke"]), table["stroke"].to_numpy()
    gains, reached = [], []
    for seed in range(5):
        rows = np.random.RandomState(seed).permutation(len(y))
        test, public, private = np.split(rows, [1200, 2200])
        of_votes = []
        for vote in ("balanced", "plain"):
            clf = PATEClassifier(
                LogisticRegression(max_iter=1000),
                mechanism="gnmax",
                vote=vote,
                classes=[0, 1],
                random_state=seed,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(
                    X.iloc[private], y[private], X_public=PublicData(X.iloc[public])
                )
            of_votes.append(
                roc_auc_score(y[test], clf.predict_proba(X.iloc[test])[:, 1])
            )
        gains.append(of_votes[0] - of_votes[1])
        reached.append(of_votes[0])
    assert np.mean(reached) > 0.65
    assert np.mean(gains) > 0.15
