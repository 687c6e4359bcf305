"""Every warning points at the user's line, however deep in a call it is raised."""

import doctest
import inspect
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import (
    PATEClassifier,
    PrivacyLeakWarning,
    PrivacyUtilityWarning,
    PublicData,
    PublicDataWarning,
    PublishedClassifier,
    StudentWarning,
    TeacherWarning,
    Votes,
)
from sklearn_pate.accounting.bounds import gaussian_worst_case
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    InteractiveGNMax,
    NoisyHistogram,
    NoisySum,
)
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import GraphSelfTrainingClassifier
from sklearn_pate.testing import seeded_noise

X, y = make_blobs(359, centers=2, random_state=0)
X, y, PUBLIC = X[:240], y[:240], PublicData(X[240:])
BY_PARTY = np.tile(y[:119], (30, 1))
COUNTS = [[200, 50]]
CURVE = gaussian_worst_case(100, [2, 3, 4])
UNTRAINED = LogisticRegression(max_iter=1)  # warns that it has not converged


def pate(**parameters):
    defaults = {"n_teachers": 5, "mechanism": GNMax(sigma=1), "epsilon": None}
    defaults |= {"estimator": GaussianNB(), "student": GaussianNB()}
    return PATEClassifier(**(defaults | parameters))


def seeded(call, *args, **kwargs):
    """Seed the noise of a call, without a line of this file between."""
    return partial(seeded_noise(0)(call), *args, **kwargs)


def petdl(**parameters):
    defaults = {"batches": Clusters(20), "epsilon": None, "noise_scale": 0.3}
    defaults |= {"estimator": GaussianNB(), "student": GaussianNB()}
    return PETDLClassifier(**(defaults | parameters))


def knn(**parameters):
    defaults = {"mechanism": GNMax(sigma=1), "n_queries": 20, "epsilon": None}
    return PrivateKNNClassifier(GaussianNB(), **(defaults | parameters))


def linear(**parameters):
    return DPLogisticRegression(data_norm=9, **parameters)


def piped(estimator):
    return make_pipeline(StandardScaler(), estimator)


def grid(estimator):
    return GridSearchCV(estimator, {}, cv=2)


def search(estimator, **parameters):
    return PrivateSearchCV(estimator, {}, mean_n_trials=2, **parameters)


def fit(estimator, **params):
    return partial(estimator.fit, X, y, **params)


def fit_public(estimator):
    return fit(estimator, X_public=PUBLIC)


def plan(estimator, **params):
    return partial(estimator.plan_privacy, X, y, **params)


def fit_from_votes(labels=BY_PARTY, **parameters):
    by_votes = pate(n_teachers="auto", classes=[0, 1], **parameters)
    return partial(by_votes.fit_from_votes, PUBLIC, labels)


def fit_from_outputs(outputs, **parameters):
    return partial(
        petdl(classes=[0, 1], **parameters).fit_from_outputs, PUBLIC, outputs
    )


def labels_that_go_on_spreading():
    labels = np.full(12000, -1)
    labels[[0, -1]] = 0, 1
    student = GraphSelfTrainingClassifier(
        KNeighborsClassifier(1), n_neighbors=2, alpha=1 - 1e-12
    )
    return partial(student.fit, np.arange(12000.0)[:, np.newaxis], labels)


# Calls by the warning that comes of them. A partial adds no line to the stack.
CALLS = {
    PrivacyLeakWarning: {
        "seeded": seeded(fit_public(pate())),
        "seeded votes": seeded(fit_from_votes()),
        "seeded PETDL": seeded(fit_public(petdl())),
        "seeded Private-kNN": seeded(fit_public(knn())),
        "seeded linear model": seeded(fit(linear())),
        "seeded search": seeded(fit(search(linear()))),
        "plan of a seeded search": seeded(plan(search(linear()))),
        "seeded search over PATE": seeded(fit_public(search(pate()))),
        "search without a guarantee": fit(search(DPLogisticRegression())),
        "delta": fit_public(pate(delta=0.09)),
        "delta of a plan": plan(pate(delta=0.09), X_public=PUBLIC),
        "delta of votes": fit_from_votes(delta=0.09),
        "delta of PETDL": fit_public(petdl(delta=0.09)),
        "delta of PETDL's plan": plan(petdl(delta=0.09), X_public=PUBLIC),
        "delta of outputs": fit_from_outputs(np.eye(2)[BY_PARTY], delta=0.09),
        "delta of Private-kNN": fit_public(knn(delta=0.09)),
        "delta of a linear model": fit(linear(method="gaussian", delta=0.09)),
        "delta of a linear plan": plan(linear(method="gaussian", delta=0.09)),
        "delta of a search": fit(search(linear(), delta=0.09)),
        "no bounds": fit(DPLogisticRegression()),
        "no bounds, SVC": fit(DPLinearSVC()),
        "no bounds, pipeline": fit(piped(DPLogisticRegression())),
        "no bounds, grid": fit(grid(DPLogisticRegression())),
        "no bounds, cross-validation": partial(
            cross_val_score, DPLogisticRegression(), X, y
        ),
        "answer": seeded(GNMax(sigma=1).answer, COUNTS),
        "interactive answer": seeded(
            InteractiveGNMax(1, 1, 1, n_teachers=250).answer,
            COUNTS,
            probabilities=[[0.5, 0.5]],
        ),
        "histogram": seeded(NoisyHistogram(sigma=1).release, COUNTS),
        "sum": seeded(NoisySum(noise_scale=1).release, COUNTS),
    },
    PublicDataWarning: {
        "held out": fit(pate(public_size=0.2)),
        "held out, plan": plan(pate(public_size=0.2)),
        "held out, PETDL": fit(petdl(public_size=0.2)),
        "held out, Private-kNN": fit(knn(public_size=0.2)),
        "held out, pipeline": fit(piped(pate(public_size=0.2))),
        "held out, grid": fit(grid(pate(public_size=0.2))),
        "held out, grid of pipelines": fit(grid(piped(pate(public_size=0.2)))),
        "held out, calibrated": fit(
            CalibratedClassifierCV(pate(public_size=0.2), cv=2)
        ),
        "held out, cross-validation": partial(
            cross_val_score, pate(public_size=0.2), X, y
        ),
        "as many rows": fit(pate(), X_public=PublicData(X.copy())),
        "as many rows in a list": fit(pate(), X_public=PublicData(X.tolist())),
    },
    PrivacyUtilityWarning: {
        "noise": fit_public(pate(mechanism=GNMax(sigma=500))),
        "noise, plan": plan(pate(mechanism=GNMax(sigma=500)), X_public=PUBLIC),
        "noise, votes": fit_from_votes(mechanism=GNMax(sigma=500)),
        "noise, PETDL": fit_public(petdl(noise_scale=500)),
        "noise, Private-kNN": fit_public(knn(mechanism=GNMax(sigma=50), n_neighbors=5)),
        "noise, gradients": fit(linear(epsilon=0.1)),
        "noise, answers": fit_from_votes(),
        "noise, grid": fit_public(grid(pate(mechanism=GNMax(sigma=500)))),
    },
    TeacherWarning: {
        "teachers": fit_public(pate(estimator=UNTRAINED)),
        "teachers of PETDL": fit_public(petdl(estimator=UNTRAINED)),
        "teachers in a grid": fit_public(grid(pate(estimator=UNTRAINED))),
        "labels": partial(Votes.from_labels, [["ill", "i11"]], ["ill", "well"]),
        "labels of votes": fit_from_votes(np.where(BY_PARTY, 0, 2)),
    },
    StudentWarning: {
        "no answer": fit_public(pate(mechanism=ConfidentGNMax(999, 1, 1))),
        "one class": fit_from_votes(0 * BY_PARTY),
        "one class of outputs": fit_from_outputs(np.eye(2)[0 * BY_PARTY]),
        "one class in a grid": fit_public(
            grid(pate(mechanism=ConfidentGNMax(99, 1, 1)))
        ),
    },
    ConvergenceWarning: {"graph": labels_that_go_on_spreading()},
    UserWarning: {"orders": partial(CURVE.to_epsilon, 1e-5)},
}


def warnings_of(call):
    """Return kind and place of each warning of a call, and the place of the call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        call()
    places = {(one.category, one.filename, one.lineno) for one in caught}
    # Votes for other rows, and few rows, are of no use either.
    if {category for category, *_ in places} - {PrivacyUtilityWarning}:
        places = {one for one in places if one[0] is not PrivacyUtilityWarning}
    return places, (__file__, line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("category", "call"),
    [
        pytest.param(category, call, id=name)
        for category, calls in CALLS.items()
        for name, call in calls.items()
    ],
)
def test_a_warning_points_at_the_call(category, call):
    found, place = warnings_of(call)
    assert found == {(category, *place)}


@pytest.mark.slow
def test_routed_metadata_leave_the_place_as_it_is():
    with config_context(enable_metadata_routing=True):
        learner = pate()
        outer = piped(learner), grid(learner), grid(piped(learner)), search(learner)
        for one in outer:
            found, place = warnings_of(seeded(fit_public(one)))
            assert found == {(PrivacyLeakWarning, *place)}


def test_callbacks_leave_the_place_as_it_is():
    callback = pytest.importorskip(
        "sklearn.callback", reason="scikit-learn before 1.9 has no callbacks"
    )
    pytest.importorskip("rich", reason="scikit-learn's ProgressBar needs rich")
    learner = pate(public_size=0.2)
    learner.set_callbacks(callback.ProgressBar())
    found, place = warnings_of(seeded(fit(learner)))
    assert found == {(PrivacyLeakWarning, *place), (PublicDataWarning, *place)}


@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyLeakWarning")
def test_publishing_a_seeded_fit():
    for learner in (pate(), petdl()):
        found, place = warnings_of(seeded(fit_public(learner))().publish)
        assert found == {(PrivacyLeakWarning, *place)}


def test_loading_what_another_version_saved(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sklearn.base, "__version__", "1.5.1")
        patch.setattr(sklearn, "__version__", "1.5.1")
        fit_public(pate())().publish().save(tmp_path / "model.skops")
    load = partial(PublishedClassifier.load, tmp_path / "model.skops")
    found, place = warnings_of(load)
    assert found == {(InconsistentVersionWarning, *place)}


# Where the user's code may stand

WARN = "curve.to_epsilon(1e-5)"


def test_each_line_warns_once_under_the_filter_of_python():
    lines = f"for _ in range(3):\n    {WARN}\n    {WARN}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        exec(lines, {"curve": CURVE})
    assert [one.lineno for one in caught] == [2, 3]


def test_a_filter_by_module_finds_the_users():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="quiet_module")
        for name in ("quiet_module", "another_module"):
            exec(WARN, {"__name__": name, "curve": CURVE})
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["<string>", "<stdin>", "<ipython-input-3-0a1b2c>"])
def test_code_without_a_file_is_the_users(name):
    with pytest.warns(UserWarning, match="best Renyi order") as caught:
        exec(compile(WARN, name, "exec"), {"curve": CURVE})
    assert caught[0].filename == name


def test_an_example_in_a_docstring_of_the_package_is_the_users():
    scope = {"__name__": "sklearn_pate.accounting", "curve": CURVE}
    example = doctest.DocTestParser().get_doctest(
        f">>> _ = {WARN}", scope, "example", None, None
    )
    with pytest.warns(UserWarning, match="best Renyi order") as caught:
        doctest.DocTestRunner().run(example)
    assert caught[0].filename == "<doctest example[0]>"
