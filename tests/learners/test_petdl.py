"""PETDLClassifier as its users meet it: what it learns, and what it states."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PrivacyLeakWarning, PublicData, PublicDataWarning
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier, RandomBatches
from sklearn_pate.students import (
    ConvSmall,
    DistillationClassifier,
    FixMatchClassifier,
    GraphSelfTrainingClassifier,
)
from tests.cases import thorough_but
from tests.private import gdp_epsilon
from tests.seeding import equal_noise


def make(**parameters):
    defaults = {
        "estimator": GaussianNB(),
        "student": GaussianNB(),
        "n_teachers": 20,
        "batches": Clusters(20),
        "epsilon": None,
        "noise_scale": 0.3,
        "random_state": 0,
    }
    return PETDLClassifier(**(defaults | parameters))


def fit(blobs, **parameters):
    X, y, X_public, _ = blobs
    return make(**parameters).fit(X, y, X_public=PublicData(X_public))


# What is learnt, on real data


@pytest.fixture(scope="module")
def split(digits):
    X, y = digits
    return SimpleNamespace(
        private=(X[:1000] / 16, y[:1000]),
        public=X[1000:1500] / 16,
        test=(X[1500:] / 16, y[1500:]),
    )


DIGITS = {
    "n_teachers": 40,
    "batches": Clusters(16),
    "noise_scale": None,
    "epsilon": 100.0,
}
NETWORK = {
    "student": FixMatchClassifier(
        ConvSmall(2), image_shape=(8, 8), max_epochs=8, batch_size=16
    )
}
SOFT = {"student": DistillationClassifier(LogisticRegression(C=0.1, max_iter=2000))}


def fit_digits(split, **parameters):
    teacher = GaussianNB(var_smoothing=0.1)
    petdl = make(**(DIGITS | {"estimator": teacher} | parameters))
    return petdl.fit(*split.private, X_public=PublicData(split.public))


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param(NETWORK, marks=pytest.mark.thorough),
        pytest.param(NETWORK | {"hint": Hint(3)}, marks=pytest.mark.thorough),
        SOFT,
        SOFT | {"weighted": True},
        SOFT | {"temperature": 3.0},
        SOFT | {"batches": RandomBatches(3)},
        {"student": GraphSelfTrainingClassifier()},
    ],
    ids=["network", "hint", "soft", "weighted", "temperature", "random", "graph"],
)
def test_a_student_learns_digits(split, parameters):
    petdl = fit_digits(split, **parameters)
    assert petdl.privacy_spent_.epsilon <= 100
    assert petdl.score(*split.test) > 0.6  # one class for all: 0.1


def test_patients_with_several_rows_are_protected_as_a_whole(split):
    X, y = split.private
    petdl = make(**DIGITS, privacy_unit="group")
    petdl.fit(X, y, X_public=PublicData(split.public), groups=np.arange(1000) // 3)
    assert petdl.privacy_spent_.unit == "group"
    assert "add or remove one group" in petdl.privacy_spent_.neighbours
    assert petdl.score(*split.test) > 0.6


@pytest.mark.thorough
def test_a_hundred_teachers_suffice_on_mnist_at_a_small_epsilon(data_set):
    mnist = data_set("mnist")
    X, y = mnist.data[:13_000] / 255, mnist.target[:13_000]
    petdl = PETDLClassifier(
        GaussianNB(var_smoothing=0.1),
        FixMatchClassifier(
            ConvSmall(3), image_shape=(28, 28), max_epochs=4, batch_size=25
        ),
        n_teachers=150,
        batches=Clusters(25),
        representation=PCA(20),
        epsilon=4.0,
        random_state=0,
    ).fit(X[:11_000], y[:11_000], X_public=PublicData(X[11_000:12_000]))
    assert petdl.privacy_spent_.epsilon <= 4
    assert petdl.score(X[12_000:], y[12_000:]) > 0.7


@pytest.mark.thorough
def test_images_keep_their_dimensions(split):
    class OnImages(GaussianNB):
        def fit(self, X, y):
            assert X.shape[1:] == (8, 8)
            return super().fit(X.reshape(len(X), -1), y)

        def predict_proba(self, X):
            return super().predict_proba(X.reshape(len(X), -1))

    X, y = split.private
    petdl = make(
        **(DIGITS | {"student": FixMatchClassifier(ConvSmall(2), max_epochs=5)}),
        estimator=OnImages(var_smoothing=0.1),
    )
    images = PublicData(split.public.reshape(-1, 8, 8))
    petdl.fit(X.reshape(-1, 8, 8), y, X_public=images)
    assert petdl.student_.input_shape_ == (1, 8, 8)
    assert petdl.predict_proba(X[:7].reshape(-1, 8, 8)).shape == (7, 10)


# The statement


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", thorough_but([0.3], [0.3, 3.0, 30.0]))
@pytest.mark.parametrize("hint", [None, Hint(1)])
def test_a_target_epsilon_is_met_and_used_up(blobs, epsilon, hint):
    petdl = fit(
        blobs,
        epsilon=epsilon,
        noise_scale=None,
        hint=hint,
        student=FixMatchClassifier(max_epochs=1),
    )
    spent, delta = petdl.privacy_spent_
    assert 0.999 * epsilon < spent <= epsilon
    assert delta == 1e-5
    assert petdl.privacy_spent_.n_queries == petdl.mechanism_.n_parts


def test_the_statement_names_teachers_and_batches(blobs):
    petdl = fit(blobs, epsilon=2.0, noise_scale=None)
    spent = petdl.privacy_spent_
    assert (spent.unit, spent.n_teachers, spent.n_queries) == ("row", 20, 15)
    scale = petdl.mechanism_.noise_scale
    for part in (
        "Replace one row",
        f"15 queries to 20 teachers were answered by NoisySum(n_parts=15, "
        f"noise_scale={scale})",
        "This fit alone",
        "which was read from the training data",
        "Everybody may see the public rows, and ",
    ):
        assert part in spent.in_one_line()


def test_given_noise_has_its_exact_cost(blobs):
    # One Gaussian release, at a distance of sqrt(2 n_parts) clipping bounds.
    petdl = fit(blobs, noise_scale=8.0)
    mu = np.sqrt(2 * len(petdl.released_)) / 8.0
    assert petdl.privacy_spent_.epsilon == pytest.approx(
        gdp_epsilon(mu, 1e-5), rel=1e-5
    )
    assert petdl.privacy_spent_.epsilon >= gdp_epsilon(mu, 1e-5)


@pytest.mark.slow
def test_a_smaller_epsilon_takes_more_noise(blobs):
    scales = [
        fit(blobs, epsilon=epsilon, noise_scale=None).mechanism_.noise_scale
        for epsilon in (10.0, 3.0, 1.0)
    ]
    assert scales == sorted(scales)
    assert scales[-1] > 2 * scales[0]


@pytest.mark.thorough
def test_a_hint_is_part_of_the_cost(blobs):
    wanted = {"epsilon": 5.0, "noise_scale": None}
    wanted["student"] = FixMatchClassifier(max_epochs=1)
    without = fit(blobs, **wanted)
    hinted = fit(blobs, hint=Hint(1, share=0.2), **wanted)
    with_both = fit(blobs, hint=Hint(1, share=0.5), **wanted)
    # The hint has the share it was given, rounded up to whole parts.
    assert without.mechanism_.n_parts == 15
    assert hinted.mechanism_.n_parts == 15 + 4
    assert with_both.mechanism_.n_parts == 15 + 15
    scales = [one.mechanism_.noise_scale for one in (without, hinted, with_both)]
    assert scales == sorted(set(scales))


def test_the_statement_does_not_depend_on_private_values(blobs):
    X, y, X_public, _ = blobs
    other = (X[::-1] * 3, (y[::-1] + 1) % 3)
    one, another = (
        make().fit(*data, X_public=PublicData(X_public)) for data in ((X, y), other)
    )
    assert one.privacy_spent_ == another.privacy_spent_
    np.testing.assert_array_equal(one.batch_of_row_, another.batch_of_row_)


def test_seeded_noise_voids_the_statement(blobs):
    with equal_noise():
        petdl = fit(blobs)
    assert petdl.privacy_spent_.epsilon == np.inf
    assert "no privacy guarantee" in petdl.privacy_spent_.in_one_line()


def test_a_delta_of_one_over_n_rows_warns(blobs):
    with pytest.warns(PrivacyLeakWarning, match="1 / 600"):
        fit(blobs, delta=1 / 600)


def test_rows_held_out_are_stated_to_be_public(blobs):
    X, y, _, _ = blobs
    with pytest.warns(PublicDataWarning, match="180 private rows"):
        petdl = make(public_size=0.3).fit(X, y)
    assert len(petdl.public_indices_) == len(petdl.batch_of_row_) == 180
    assert "held out as public rows" in petdl.privacy_spent_.in_one_line()


# Public batches


def test_the_released_sum_has_a_row_for_each_batch(blobs):
    student = FixMatchClassifier(max_epochs=1)
    petdl = fit(blobs, hint=Hint(1), student=student)
    assert petdl.batch_of_row_.shape == (300,)
    assert set(petdl.batch_of_row_) == {*range(-1, 15)}
    assert petdl.released_.shape == (15, 3)
    assert petdl.similarities_.shape == (15, 15)
    np.testing.assert_array_equal(petdl.similarities_, petdl.similarities_.T)
    assert not petdl.similarities_.diagonal().any()
    assert not hasattr(fit(blobs), "similarities_")


@pytest.mark.parametrize(("core", "share"), [(1.0, 1.0), (0.2, 0.2)])
def test_the_core_of_a_cluster_is_the_batch(blobs, core, share):
    grouped = fit(blobs, batches=Clusters(20, core=core)).batch_of_row_ >= 0
    assert grouped.mean() == pytest.approx(share, abs=0.05)


def test_random_batches_hold_every_row(blobs):
    petdl = fit(blobs, batches=RandomBatches(7))
    sizes = np.bincount(petdl.batch_of_row_)
    assert len(sizes) == 300 // 7
    assert set(sizes) == {7, 8}
    assert petdl.privacy_spent_.n_queries == 300 // 7


def test_the_released_sum_is_that_of_the_teachers_with_noise(blobs):
    y_public = blobs[3]
    petdl = fit(blobs, noise_scale=1e-3, batches=Clusters(20, core=1.0))
    # The probabilities of each of 20 teachers for a batch add up to 1.
    np.testing.assert_allclose(petdl.released_.sum(axis=1), 20, atol=0.2)
    named = petdl.released_.argmax(axis=1)[petdl.batch_of_row_]
    assert np.mean(named == y_public) > 0.95
    quiet = fit(
        blobs, noise_scale=1e-3, batches=Clusters(20, core=1.0), clipping_bound=0.1
    )
    assert quiet.released_.max() <= 20 * 0.1 + 0.01


@pytest.mark.thorough
def test_temperature_evens_out_what_is_released_and_not_what_is_learnt(blobs):
    X_public = blobs[2]
    forests = {"estimator": RandomForestClassifier(10), "noise_scale": 1e-3}
    forests["student"] = DistillationClassifier(LogisticRegression())
    plain, warm = (fit(blobs, temperature=t, **forests) for t in (1.0, 4.0))
    assert warm.released_.max(axis=1).mean() < plain.released_.max(axis=1).mean()
    learnt = [np.mean(one.predict_proba(X_public).max(axis=1)) for one in (plain, warm)]
    assert learnt[1] > learnt[0] - 0.1


@pytest.mark.parametrize("temperature", [1e-3, 1000.0])
def test_no_temperature_overflows(blobs, temperature):
    soft = DistillationClassifier(LogisticRegression())
    petdl = fit(blobs, temperature=temperature, student=soft)
    assert np.all(np.isfinite(petdl.predict_proba(blobs[0])))


def test_weights_let_confident_teachers_count_more(blobs):
    class Guessing(GaussianNB):
        """Is sure of nothing where it has seen few rows of the first class."""

        def predict_proba(self, X):
            sure = super().predict_proba(X)
            return sure if self.class_count_[0] > 10 else np.full_like(sure, 1 / 3)

    def margin(weighted):
        released = fit(
            blobs, estimator=Guessing(), weighted=weighted, noise_scale=1e-3
        ).released_
        return np.mean(released.max(axis=1) / released.sum(axis=1))

    assert margin(True) > margin(False) + 0.05


@pytest.mark.slow
def test_teachers_and_clusters_use_the_representation(split):
    petdl = fit_digits(split, representation=PCA(10), **SOFT)
    assert petdl.representation_.n_features_in_ == 64
    assert petdl.student_.n_features_in_ == 64, "the student sees rows as they came"
    codes = {one.code for one in petdl.privacy_spent_.assumptions}
    assert "representation-public" in codes
    assert petdl.score(*split.test) > 0.6
