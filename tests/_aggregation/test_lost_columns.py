"""Warnings of columns that features of public rows do not hold."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyUtilityWarning,
    PublicData,
)
from sklearn_pate.inspection import plan
from sklearn_pate.learners import DPLogisticRegression, DPNaiveBayesClassifier
from tests.cases import thorough_but

N_ROWS, N_PUBLIC, N_CODES = 4000, 1000, 300
LEARNERS = {
    "Newton": DPNewtonClassifier(random_state=0),
    "votes": PATEClassifier(mechanism="gnmax", n_teachers=250, random_state=0),
    "scores": PATEClassifier(mechanism="scores", n_teachers=250, random_state=0),
}
CODES = [f"{one:03d}.x" for one in range(N_CODES)]


def of_normal_columns(seed=0, n_rows=N_ROWS + N_PUBLIC):
    random_state = np.random.RandomState(seed)
    X = random_state.standard_normal((n_rows, 300))
    y = 3 * X @ np.full(300, 300**-0.5) + random_state.logistic(size=n_rows) > 0
    return X, y.astype(int)


def of_codes(seed=0, n_rows=N_ROWS + N_PUBLIC):
    random_state = np.random.RandomState(seed)
    code = random_state.randint(N_CODES, size=n_rows)
    effects = np.random.RandomState(9).normal(scale=1.5, size=N_CODES)
    y = effects[code] + random_state.logistic(size=n_rows) > 0
    age = random_state.uniform(20, 80, size=n_rows)
    frame = pd.DataFrame({"code": np.array(CODES)[code], "age": age})
    return frame, y.astype(int)


def as_categories(X, y):
    return X.astype({"code": "category"}), y


def as_objects(X, y):
    return X.to_numpy(dtype=object), y


NORMAL = r"features keep \d+ % of the variance of 300 columns"
LOST = {
    "normal columns": (of_normal_columns, NORMAL),
    "text": (of_codes, r"in the columns 'code' \(\d+ %\)"),
    "categories": (lambda: as_categories(*of_codes()), r"columns 'code' \(\d+ %\)"),
    "objects": (lambda: as_objects(*of_codes()), r"columns 0 \(\d+ %\)"),
}


def split(X, y):
    return X[N_PUBLIC:], y[N_PUBLIC:], PublicData(X[:N_PUBLIC])


def planned(learner, X, y, X_public):
    texts = plan(learner, X, y, X_public=X_public).warnings
    return [one for one in texts if "features" in one]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("kind", LEARNERS)
def test_columns_that_features_lose_are_told_of_before_any_cost(
    name, kind, ledger, no_noise
):
    rows, expected = LOST[name]
    X, y, X_public = split(*rows())
    learner = LEARNERS[kind]
    no_noise()
    [text] = planned(learner, X, y, X_public)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=PrivacyUtilityWarning)
        with pytest.raises(PrivacyUtilityWarning, match=expected) as caught:
            type(learner)(**learner.get_params(deep=False) | {"ledger": ledger}).fit(
                X, y, X_public=X_public
            )
    assert str(caught.value) == text
    assert ledger.entries() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEARNERS)
def test_what_they_say_depends_on_public_rows_alone(kind):
    X, y, X_public = split(*of_codes())
    other = X.assign(code="one code")
    assert planned(LEARNERS[kind], X, y, X_public) == planned(
        LEARNERS[kind], other, y, X_public
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but(["adult"], ["adult", "diabetes130"]))
@pytest.mark.parametrize("kind", LEARNERS)
def test_real_tables_are_not_told_of(name, kind, data_set):
    # Three columns of Diabetes have 700 codes and more, some of them frequent.
    X, y = data_set(name, as_frame=True, return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(X))[: N_ROWS + N_PUBLIC]
    assert not planned(LEARNERS[kind], *split(X.iloc[rows], np.asarray(y)[rows]))


@pytest.mark.thorough
def test_the_learners_that_they_name_do_better():
    def auc(learner, rows, **public):
        X, y = rows(seed=0)
        test, labels = rows(seed=1)
        fitted = learner.fit(X[N_PUBLIC:], y[N_PUBLIC:], **public)
        return roc_auc_score(labels, fitted.predict_proba(test)[:, 1])

    named = {
        of_normal_columns: DPLogisticRegression(
            data_norm=20.0, method="gaussian", classes=[0, 1]
        ),
        of_codes: DPNaiveBayesClassifier({"code": CODES, "age": (20, 80)}),
    }
    for rows, learner in named.items():
        X_public = PublicData(rows()[0][:N_PUBLIC])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            newton = auc(DPNewtonClassifier(random_state=0), rows, X_public=X_public)
        assert auc(learner, rows) > newton + 0.08


def test_a_plan_for_few_rows_of_many_classes_names_counts():
    def text(n_rows, n_classes):
        planned = plan(DPNewtonClassifier(), n_rows=n_rows, n_classes=n_classes)
        return " ".join(planned.warnings)

    named = "DPNaiveBayesClassifier for a table of up to"
    assert named in text(1000, 7)
    assert named in text(667, 5)
    assert named not in text(20_000, 7)
    assert named not in text(200, 2)
