"""PrivateKNNClassifier as its users meet it: what it learns, and what it states."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from sklearn_pate import (
    PrivacyLeakWarning,
    PublicData,
    PublicDataWarning,
    privacy_leaks,
)
from sklearn_pate.accounting import DEFAULT_ORDERS
from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, NoisyHistogram
from sklearn_pate.students import (
    DistillationClassifier,
    GraphSelfTrainingClassifier,
    UncertaintyQueries,
)
from tests.private import PoissonSampler, SampledMechanism
from tests.seeding import equal_noise


def make(**parameters):
    defaults = {
        "student": GaussianNB(),
        "mechanism": GNMax(sigma=2.0),
        "sampling_rate": 0.5,
        "n_queries": 60,
        "epsilon": None,
        "random_state": 0,
    }
    return PrivateKNNClassifier(**(defaults | parameters))


def fit(blobs, **parameters):
    X, y, X_public, _ = blobs
    return make(**parameters).fit(X, y, X_public=PublicData(X_public))


# Accuracy, on real data


@pytest.fixture(scope="module")
def split(digits):
    X, y = digits
    return SimpleNamespace(
        private=(X[:900], y[:900]), public=X[900:], test=(X[900:], y[900:])
    )


DIGITS = {
    "student": None,
    "mechanism": "gnmax",
    "epsilon": 10.0,
    "sampling_rate": 0.3,
    "n_queries": 100,
}
LINEAR = LogisticRegression(C=1e-3, max_iter=2000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"metric": "cosine"},
        pytest.param({"representation": PCA(20)}, marks=pytest.mark.thorough),
        {"representation": FunctionTransformer(np.sqrt)},
        pytest.param(
            {"student": LINEAR, "n_queries": 200, "epsilon": 20.0},
            marks=pytest.mark.thorough,
        ),
        {"student": DistillationClassifier(LINEAR), "mechanism": "histogram"},
        {"student": LINEAR, "query_strategy": "uncertainty"},
        pytest.param(
            {"mechanism": "confident", "epsilon": 20.0}, marks=pytest.mark.thorough
        ),
        {"mechanism": ConfidentGNMax(0.3), "epsilon": 20.0},
    ],
    ids=lambda parameters: ", ".join(f"{k}={v}" for k, v in parameters.items()),
)
def test_a_student_learns_digits(split, parameters):
    wanted = DIGITS | parameters
    knn = make(**wanted).fit(*split.private, X_public=PublicData(split.public))
    assert 0.99 * wanted["epsilon"] < knn.privacy_spent_.epsilon <= wanted["epsilon"]
    assert knn.score(*split.test) > 0.5  # one class for all: 0.1


@pytest.mark.thorough
def test_half_of_mnist_is_learnt_at_a_small_epsilon(data_set):
    mnist = data_set("mnist")
    X, y = mnist.data[:32_000] / 255, mnist.target[:32_000]
    knn = PrivateKNNClassifier(
        epsilon=0.5,
        representation=FrozenEstimator(PCA(40, random_state=0).fit(X[30_000:])),
        random_state=0,
    ).fit(X[:30_000], y[:30_000], X_public=PublicData(X[30_000:]))
    assert knn.privacy_spent_.epsilon <= 0.5
    assert knn.score(X[30_000:], y[30_000:]) > 0.6


@pytest.mark.slow
def test_patients_with_several_rows_are_protected_as_a_whole(split):
    X, y = split.private
    knn = make(**DIGITS | {"epsilon": 20.0}, privacy_unit="group")
    # Each has rows of one class, as a patient has one diagnosis.
    order = np.argsort(y, kind="stable")
    groups = np.empty(900, dtype=int)
    groups[order] = np.arange(900) // 2
    knn.fit(X, y, X_public=PublicData(split.public), groups=groups)
    spent = knn.privacy_spent_
    assert (spent.unit, spent.relation) == ("group", "add-remove")
    assert (
        "Add or remove one group with all its rows" in knn.privacy_spent_.in_one_line()
    )
    assert knn.score(*split.test) > 0.5


# The votes


QUIET = {"mechanism": GNMax(sigma=0.01), "sampling_rate": 1.0}
COUNTS = QUIET | {"mechanism": NoisyHistogram(sigma=0.01)}


def test_without_sampling_and_noise_the_answers_are_those_of_nearest_neighbours(blobs):
    X, y, X_public, _ = blobs
    knn = fit(blobs, **QUIET, n_neighbors=7)
    queried = X_public[knn.queried_indices_]
    nearest = np.argsort(((queried[:, np.newaxis] - X) ** 2).sum(axis=2), axis=1)[:, :7]
    votes = np.array([np.bincount(y[rows], minlength=3) for rows in nearest])
    top = votes.max(axis=1, keepdims=True)
    assert np.all(votes[np.arange(60), knn.answers_] == top[:, 0])
    assert knn.n_neighbors_ == knn.privacy_spent_.n_teachers == 7
    histograms = fit(blobs, **COUNTS, n_neighbors=7).histograms_
    np.testing.assert_array_equal(histograms, votes)


def test_rows_of_other_labels_displace_no_vote(blobs):
    X, y, X_public, _ = blobs
    strange = np.repeat(X_public, 5, axis=0)  # nearer to every query than any row
    wanted = COUNTS | {"n_neighbors": 7, "classes": [0, 1, 2]}
    expected = fit(blobs, **wanted).histograms_
    knn = make(**wanted).fit(
        np.concatenate([strange, X]),
        np.concatenate([np.full(len(strange), 9), y]),
        X_public=PublicData(X_public),
    )
    np.testing.assert_array_equal(knn.histograms_, expected)


def test_groups_of_other_labels_displace_no_vote(blobs):
    X, y, X_public, _ = blobs
    wanted = COUNTS | {"n_neighbors": 7, "classes": [0, 1, 2]}
    grouped = make(**wanted, privacy_unit="group")
    public = PublicData(X_public)
    groups = np.arange(len(X)) // 4
    expected = grouped.fit(X, y, X_public=public, groups=groups).histograms_
    assert expected.sum(axis=1).tolist() == [7] * 60
    strange = np.repeat(X_public, 5, axis=0)
    grouped.fit(
        np.concatenate([strange, X]),
        np.concatenate([np.full(len(strange), 9), y]),
        X_public=public,
        # Some of them in groups that have rows of known labels, too.
        groups=np.concatenate([np.arange(len(strange)) + 100, groups]),
    )
    np.testing.assert_array_equal(grouped.histograms_, expected)


@pytest.mark.parametrize("sigma", [0.3, 2.0, 26.3])
def test_automatic_neighbours_depend_on_the_noise_only(blobs, sigma):
    X, y, X_public, _ = blobs
    knn = make(mechanism=GNMax(sigma=sigma))
    for n_rows in (100, 600):
        knn.fit(X[:n_rows], y[:n_rows], X_public=PublicData(X_public))
        assert knn.n_neighbors_ == math.ceil(6 * sigma)


def test_each_round_of_queries_draws_fresh_samples(blobs, monkeypatch):
    samples = []
    draw = PoissonSampler.draw

    def watched(self, n_units):
        samples.append(draw(self, n_units))
        return samples[-1]

    monkeypatch.setattr(PoissonSampler, "draw", watched)
    fit(blobs, query_strategy=UncertaintyQueries(n_rounds=4))
    assert len(samples) == 60
    assert {len(one) for one in samples} == {600}
    assert len({one.tobytes() for one in samples}) == 60


# Containers


@pytest.mark.slow
def test_frames_and_sparse_rows_take_a_representation(blobs):
    X, y, X_public, _ = blobs
    X, y = X[:150], y[:150]
    words = np.array(["red", "green", "blue"])

    def frame(X):
        return pd.DataFrame({"x": X[:, 0], "colour": words[(X[:, 1] > 0).astype(int)]})

    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]), (StandardScaler(), ["x"])
    )
    student = make_pipeline(columns, LogisticRegression())
    knn = make(representation=columns, student=student)
    knn.fit(frame(X), y, X_public=PublicData(frame(X_public)))
    assert knn.predict(frame(X)).shape == (150,)
    assert knn.feature_names_in_.tolist() == ["x", "colour"]

    knn = make(representation=TruncatedSVD(1), student=LogisticRegression())
    knn.fit(sp.csr_array(X), y, X_public=PublicData(sp.csr_array(X_public)))
    assert knn.predict(sp.csr_array(X)).shape == (150,)


@pytest.mark.slow
def test_images_are_compared_pixel_by_pixel(split):
    X, y = split.private
    flat = fit_images = None
    for shape in ((-1, 64), (-1, 8, 8)):
        knn = make(
            student=make_pipeline(FunctionTransformer(flatten), LINEAR),
            **COUNTS,
            n_neighbors=5,
        ).fit(X.reshape(shape), y, X_public=PublicData(split.public.reshape(shape)))
        flat, fit_images = fit_images, knn.histograms_
    np.testing.assert_array_equal(flat, fit_images)


def flatten(X):
    return X.reshape(len(X), -1)


@pytest.mark.slow
def test_private_rows_are_not_changed_by_a_transformer_that_works_in_place(blobs):
    X, _, X_public, _ = blobs
    before = X.copy()
    fit(blobs, representation=FrozenEstimator(StandardScaler(copy=False).fit(X_public)))
    np.testing.assert_array_equal(X, before)


def test_a_representation_is_fitted_on_public_rows_only(blobs):
    _, _, X_public, _ = blobs
    knn = fit(blobs, representation=StandardScaler())
    np.testing.assert_allclose(knn.representation_.mean_, X_public.mean(axis=0))


def test_string_labels_come_back(blobs):
    X, y, X_public, y_public = blobs
    names = np.array(["a", "b", "c"])
    knn = make(**QUIET).fit(X, names[y], X_public=PublicData(X_public))
    assert knn.score(X_public, names[y_public]) > 0.8


@pytest.mark.slow
def test_the_default_student_compares_rows_in_the_same_representation(blobs):
    knn = fit(blobs, student=None, representation=StandardScaler())
    assert isinstance(knn.student_, GraphSelfTrainingClassifier)
    assert isinstance(knn.student_.representation, StandardScaler)
    assert make(student=None, n_queries="auto").plan_privacy(
        *blobs[:2], X_public=PublicData(blobs[2])
    ).n_queries == min(100, len(blobs[2]))


# The statement


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon", [0.3, pytest.param(3.0, marks=pytest.mark.thorough), 30.0]
)
@pytest.mark.parametrize("mechanism", ["gnmax", "confident"])
def test_a_target_epsilon_is_met_and_used_up(blobs, epsilon, mechanism):
    knn = fit(blobs, epsilon=epsilon, mechanism=mechanism, student=GaussianNB())
    spent, delta = knn.privacy_spent_
    assert 0.999 * epsilon < spent <= epsilon
    assert delta == 1e-5
    assert knn.privacy_spent_.n_queries == 60


def test_the_statement_names_samples_and_neighbours(blobs):
    spent = fit(blobs, mechanism=GNMax(sigma=20.0), sampling_rate=0.15).privacy_spent_
    for part in (
        "Neighbours: Add or remove one row.",
        "60 queries to the 120 nearest rows of secret samples were answered by "
        "SampledMechanism(mechanism=GNMax(sigma=20.0), sampling_rate=0.15)",
        "This fit alone",
        "which was read from the training data",
        "Everybody may see the public rows, and ",
    ):
        assert part in spent.in_one_line()
    assert "number of rows is public" not in spent.in_one_line()
    expected = SampledMechanism(GNMax(20.0), 0.15).cost(60, 3).curve
    assert spent.curve == expected
    np.testing.assert_array_equal(spent.curve.orders, DEFAULT_ORDERS)


def test_a_share_of_rows_that_is_held_out_makes_their_number_public(blobs):
    X, y, _, _ = blobs
    with pytest.warns(PublicDataWarning, match="are not protected"):
        knn = make(public_size=0.3).fit(X, y)
    assert len(knn.public_indices_) == 180
    assert "number of rows is public" in knn.privacy_spent_.in_one_line()
    with pytest.warns(PublicDataWarning):
        knn = make(public_size=0.3, privacy_unit="group").fit(
            X, y, groups=np.arange(600) // 2
        )
    assert "number of rows is public" not in knn.privacy_spent_.in_one_line()


@pytest.mark.slow
def test_a_plan_states_the_cost_without_reading_rows(blobs, monkeypatch):
    X, y, X_public, _ = blobs
    knn = make(student=None, representation=PCA(2), privacy_unit="group")
    groups = np.arange(600)

    def draw(self, n_units):
        pytest.fail("a sample was drawn")

    with monkeypatch.context() as patched:
        patched.setattr(PoissonSampler, "draw", draw)
        planned = knn.plan_privacy(X, y, X_public=PublicData(X_public), groups=groups)
    assert not hasattr(knn, "classes_")
    knn.fit(X, y, X_public=PublicData(X_public), groups=groups)
    assert planned == knn.privacy_spent_


def test_there_is_no_data_dependent_analysis(blobs):
    assert not hasattr(fit(blobs), "privacy_analysis_")


def test_seeded_noise_voids_the_statement(blobs):
    with equal_noise():
        spent = fit(blobs, mechanism=GNMax(2.0)).privacy_spent_
    assert spent.epsilon == np.inf
    assert "The noise was seeded" in str(spent)


def test_a_large_delta_warns(blobs):
    with pytest.warns(PrivacyLeakWarning, match="delta=0.09 is not below"):
        fit(blobs, delta=0.09)


# Pipelines, searches, audits


def test_a_scaler_in_front_of_it_leaks_and_inside_does_not():
    leaky = make_pipeline(StandardScaler(), PrivateKNNClassifier())
    assert [leak.name for leak in privacy_leaks(leaky)] == ["standardscaler"]
    assert privacy_leaks(PrivateKNNClassifier(representation=StandardScaler())) == []


@pytest.mark.slow
def test_a_search_finds_parameters_of_it(blobs):
    X, y, X_public, _ = blobs
    search = GridSearchCV(make(), {"n_neighbors": [1, 30]}, cv=KFold(3))
    search.fit(X, y, X_public=PublicData(X_public))
    assert search.best_score_ > 0.5


def audit(n_runs):
    """Try to see whether one row is there that alone is near all queries."""
    X = np.concatenate([[[0.0]], np.full((60, 1), 10.0)])
    y = np.array([1] + [0] * 60)
    knn = make(
        mechanism=NoisyHistogram(sigma=2.0),
        n_neighbors=1,
        sampling_rate=0.005,
        n_queries=400,
        query_strategy="random",
        classes=[0, 1],
        delta=0.01,
    )
    return audit_neighbours(
        knn,
        (X, y),
        (X[1:], y[1:]),
        X_public=np.linspace(-1, 1, 400)[:, np.newaxis],
        statistic=lambda knn: knn.histograms_[:, 1].sum(),
        n_runs=n_runs,
    )


@pytest.mark.thorough
def test_an_audit_of_its_neighbours_does_not_contradict():
    result = audit(n_runs=20)
    assert not result.contradicted
    assert 0.1 < result.epsilon_claimed < 0.11


@pytest.mark.thorough
def test_an_audit_contradicts_answers_that_do_not_come_from_samples(monkeypatch):
    monkeypatch.setattr(PoissonSampler, "draw", lambda self, n: np.ones(n, dtype=bool))
    assert audit(n_runs=100).contradicted
