"""Warnings of releases that no student can learn from, before anything is recorded."""

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from sklearn_pate import (
    PATEClassifier,
    PrivacyLedger,
    PrivacyUtilityWarning,
    PublicData,
    Votes,
)
from sklearn_pate.inspection import plan
from sklearn_pate.learners import Clusters, PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax
from sklearn_pate.students import DistillationClassifier, GraphSelfTrainingClassifier

pytestmark = pytest.mark.filterwarnings("always::sklearn_pate.PrivacyUtilityWarning")

AVERAGING, SEMI_SUPERVISED = LogisticRegression(), GraphSelfTrainingClassifier()


@pytest.fixture(scope="module")
def rows():
    X, y = make_blobs(700, centers=2, random_state=0)
    return X[:400], y[:400], PublicData(X[400:])


def pate(**parameters):
    return PATEClassifier(
        LogisticRegression(), **({"n_teachers": 10, "n_queries": 50} | parameters)
    )


def fit(X, y, X_public, **parameters):
    return pate(**parameters).fit(X, y, X_public=X_public)


def plan_privacy(X, y, X_public, **parameters):
    return pate(**parameters).plan_privacy(X, y, X_public=X_public)


def fit_from_votes(X, y, X_public, **parameters):
    votes = Votes.from_labels(np.zeros((10, 300), dtype=int), classes=[0, 1])
    return pate(**parameters, classes=[0, 1]).fit_from_votes(X_public, votes)


@pytest.mark.slow
@pytest.mark.parametrize("method", [fit, plan_privacy, fit_from_votes])
def test_noise_that_hides_all_votes_is_warned_of(rows, method):
    with pytest.warns(PrivacyUtilityWarning) as caught:
        method(*rows)
    [text] = {str(one.message) for one in caught}
    voters = "parties" if method is fit_from_votes else "teachers"
    noise = r"The noise of GNMax\(sigma=30\.\d+\) is too large for 10 "
    assert re.match(noise + voters, text)
    assert "epsilon=" in text


@pytest.mark.parametrize("method", [fit, fit_from_votes])
def test_as_an_error_it_leaves_the_ledger_empty(rows, tmp_path, method):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=2, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        with pytest.raises(PrivacyUtilityWarning):
            method(*rows, ledger=ledger)
    assert ledger.entries() == []


def test_it_depends_on_no_private_value(rows):
    X, y, X_public = rows
    texts = []
    for values, labels in [(X, y), (np.zeros_like(X), y[::-1])]:
        with pytest.warns(PrivacyUtilityWarning) as caught:
            plan_privacy(values, labels, X_public)
        texts.append([str(one.message) for one in caught])
    assert texts[0] == texts[1]


def test_a_plan_of_the_fit_has_it_as_text_and_warns_of_nothing(rows):
    X, y, X_public = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        found = plan(pate(), X, y, X_public=X_public)
    assert "too large for 10 teachers" in found.warnings[-1]


def of_votes(*, n_rows=None, n_classes=None, class_prior=None, **parameters):
    """Plan from numbers."""
    return plan(
        PATEClassifier(**parameters),
        n_rows=n_rows,
        n_classes=n_classes,
        class_prior=class_prior,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("student", [AVERAGING, SEMI_SUPERVISED])
@pytest.mark.parametrize(
    "setting",
    [
        {"n_teachers": 20, "n_queries": 2000},
        {"n_teachers": 60, "n_queries": 2000, "epsilon": 0.5},
        {"n_teachers": 100, "n_queries": 1000, "epsilon": 0.25, "n_classes": 10},
        {"n_teachers": 30, "n_queries": 200, "n_classes": 5},
    ],
)
def test_the_settings_that_it_names_would_do(setting, student):
    [text] = of_votes(**setting, student=student).warnings
    named = dict(re.findall(r"(\w+)=(\d+(?:\.\d+)?)", text.split("Use ")[1]))
    assert {"n_teachers", "epsilon"} <= named.keys()
    for name, value in named.items():
        other = {name: float(value) if name == "epsilon" else int(value)}
        assert of_votes(**setting | other, student=student).warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "student"),
    [
        # The settings of the benchmarks on Adult, Diabetes and MNIST.
        ({"n_teachers": 500, "n_queries": 3000, "epsilon": 0.5}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 3000}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 1500, "epsilon": 2}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 15369, "epsilon": 2}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 100, "n_classes": 10}, SEMI_SUPERVISED),
        ({"n_teachers": 250, "n_queries": "auto"}, AVERAGING),
        ({"n_teachers": 250, "n_queries": "auto"}, SEMI_SUPERVISED),
    ],
)
def test_good_settings_are_not_warned_of(setting, student):
    assert of_votes(**setting, student=student).warnings == ()


@pytest.mark.parametrize("parameters", [{}, {"mechanism": "scores", "n_teachers": 60}])
def test_a_function_on_a_few_public_rows_is_warned_of(rows, parameters, tmp_path):
    X, y, X_public = rows
    ledger = PrivacyLedger(tmp_path / "few.sqlite", epsilon=9, delta=1e-5)
    pate = PATEClassifier(epsilon=8.0, ledger=ledger, **parameters)
    few, enough = PublicData(X_public.X[:49]), PublicData(X_public.X[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyUtilityWarning, match="X_public has only 49 rows"):
            pate.fit(X, y, X_public=few)
    assert not ledger.entries()
    assert any("49 rows" in one for one in plan(pate, X, y, X_public=few).warnings)
    warned = plan(pate, X, y, X_public=enough).warnings
    assert not any("rows only" in one for one in warned)


@pytest.mark.slow
def test_few_queries_must_nearly_all_be_answered_right():
    few = {"n_teachers": 100, "n_queries": 5, "epsilon": None}
    assert of_votes(**few, mechanism=GNMax(10.0)).warnings == ()
    assert of_votes(**few, mechanism=GNMax(60.0)).warnings != ()


@pytest.mark.slow
def test_more_rows_than_a_teacher_needs_are_needed_for_more_teachers():
    setting = {"n_teachers": 60, "n_queries": 2000, "epsilon": 0.5}
    assert "n_teachers=" not in of_votes(n_rows=3000, **setting).warnings[-1]
    assert "n_teachers=" in of_votes(n_rows=30_000, **setting).warnings[-1]


@pytest.mark.slow
def test_a_check_that_hardly_passes_is_warned_of():
    mechanism = ConfidentGNMax(300, 10.0, 10.0)
    found = of_votes(n_teachers=100, n_queries=500, epsilon=None, mechanism=mechanism)
    assert "0 % of 500 queries are answered correctly" in found.warnings[-1]


@pytest.mark.slow
def test_interactive_answers_are_not_judged(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        plan_privacy(*rows, mechanism="interactive")


def fit_knn(X, y, X_public, **parameters):
    learner = PrivateKNNClassifier(LogisticRegression(), n_neighbors=5, n_queries=200)
    return learner.set_params(**parameters).fit(X, y, X_public=X_public)


def fit_petdl(X, y, X_public, **parameters):
    student = DistillationClassifier(LogisticRegression())
    learner = PETDLClassifier(
        LogisticRegression(), student, n_teachers=10, batches=Clusters(10)
    )
    return learner.set_params(**parameters).fit(X, y, X_public=X_public)


def fit_from_outputs(X, y, X_public, **parameters):
    student = DistillationClassifier(LogisticRegression())
    learner = PETDLClassifier(student=student, classes=[0, 1], batches=Clusters(10))
    outputs = np.full((10, 300, 2), 0.5)
    return learner.set_params(**parameters).fit_from_outputs(X_public, outputs)


OF_BASELINES = {
    fit_knn: r"sampling_rate=0.15\) is too large for 5 neighbours\. .* of 200 queries ",
    fit_petdl: r"NoisySum\(.*\) is too large for 10 teachers\. .* of 30 public ",
    fit_from_outputs: r"NoisySum\(.*\) is too large for 10 parties\. ",
}


@pytest.mark.parametrize("method", OF_BASELINES)
def test_baselines_are_warned_of_before_anything_is_recorded(rows, method, tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=2, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        with pytest.raises(PrivacyUtilityWarning, match=OF_BASELINES[method]):
            method(*rows, ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.thorough
def test_the_settings_that_baselines_name_would_do(rows):
    for method, name in [(fit_knn, "n_neighbors"), (fit_petdl, "epsilon")]:
        with pytest.warns(PrivacyUtilityWarning) as caught:
            method(*rows)
        [text] = {str(one.message) for one in caught}
        [value] = re.findall(rf"{name}=([\d.]+\d)", text)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyUtilityWarning)
            method(*rows, **{name: int(value) if method is fit_knn else float(value)})


@pytest.mark.slow
@pytest.mark.parametrize("student", [AVERAGING, SEMI_SUPERVISED])
@pytest.mark.parametrize("class_prior", [0.02, [0.98, 0.02]])
def test_a_rare_class_is_warned_of(student, class_prior):
    setting = {"n_teachers": 250, "mechanism": "gnmax", "student": student}
    assert of_votes(**setting).warnings == ()
    assert of_votes(**setting, class_prior=class_prior).warnings == ()
    setting["vote"] = "plain"
    [text] = of_votes(**setting, class_prior=class_prior).warnings
    assert "The rarest class has a share of 0.02" in text
    assert "250 teachers" in text
    assert "vote='balanced'" in text


@pytest.mark.slow
@pytest.mark.parametrize("student", [AVERAGING, SEMI_SUPERVISED])
@pytest.mark.parametrize(
    ("n_classes", "class_prior"), [(2, 0.24), (2, 0.5), (10, 0.1), (10, [0.1] * 10)]
)
def test_classes_that_are_not_rare_change_nothing(student, n_classes, class_prior):
    setting = {"n_teachers": 300, "n_queries": "auto", "student": student}
    plans = [
        of_votes(**setting, n_classes=n_classes, class_prior=prior)
        for prior in (None, class_prior)
    ]
    assert plans[0].facts == tuple(
        one for one in plans[1].facts if one.name != "rarest"
    )
    assert plans[0].warnings == plans[1].warnings


@pytest.mark.slow
@pytest.mark.parametrize("class_prior", [0, 0.6, -0.1, [0.5, 0.2], [0.5], "rare"])
def test_shares_that_are_none_are_refused(class_prior):
    with pytest.raises(ValueError, match=r"class_prior=.* must be"):
        of_votes(n_teachers=250, n_queries=100, class_prior=class_prior)
