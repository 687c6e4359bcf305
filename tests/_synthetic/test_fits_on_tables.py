"""All fits on rows drawn from noisy counts of a table of mixed columns."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import SelfTrainingClassifier

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublishedClassifier,
)
from sklearn_pate.inspection import plan
from sklearn_pate.learners import (
    Clusters,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
    RandomBatches,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    InteractiveGNMax,
    MeanScores,
    NoisyHistogram,
)
from sklearn_pate.students import DistillationClassifier
from tests._synthetic.tables import (
    DOMAIN,
    GROUPS,
    SHAPES,
    SYNTHETIC,
    TABLE,
    Y,
    model,
    numbers,
)
from tests.private import LogOdds, NewtonSteps, TwoPartRelease

COMMON = {"epsilon": None, "random_state": 0, "synthetic": SYNTHETIC}


def of_votes(teacher=None, **changes):
    given = {"n_teachers": 10, "n_queries": 40, "mechanism": GNMax(sigma=1.0)}
    given |= {"student": model()} | COMMON | changes
    return PATEClassifier(teacher or model(), **given)


def on_numbers(**changes):
    """Compare public rows as numbers, which teachers and student get."""
    return of_votes(LogisticRegression(), representation=numbers(), **changes)


def petdl(**changes):
    given = {"n_teachers": 10, "batches": Clusters(10), "noise_scale": 0.3}
    return PETDLClassifier(
        LogisticRegression(),
        DistillationClassifier(model()),
        representation=numbers(),
        **(given | COMMON | changes),
    )


def neighbours(**changes):
    given = {"n_neighbors": 20, "n_queries": 40, "mechanism": GNMax(sigma=3)}
    return PrivateKNNClassifier(
        GaussianNB(), sampling_rate=0.5, **(given | COMMON | changes)
    )


interactive = InteractiveGNMax(sigma=1.0, sigma_threshold=1.0, threshold=5)
FITS = {
    "random": of_votes(query_strategy="random"),
    "default student": of_votes(student=None),
    "representative": on_numbers(query_strategy="representative"),
    "uncertainty": of_votes(query_strategy="uncertainty"),
    "interactive": of_votes(mechanism=interactive),
    "confident": of_votes(mechanism=ConfidentGNMax(1.0, 1.0, 5)),
    "histogram": of_votes(mechanism=NoisyHistogram(sigma=1.0)),
    "self-training": of_votes(
        GaussianNB(), student=SelfTrainingClassifier(GaussianNB())
    ),
    "scores": PATEClassifier(
        model(), n_teachers=10, mechanism=MeanScores(noise_scale=0.1), **COMMON
    ),
    "newton": DPNewtonClassifier(
        epsilon=20.0,
        random_state=0,
        synthetic=clone(SYNTHETIC).set_params(sigma=None),
    ),
    "random batches": petdl(batches=RandomBatches(10)),
    "clusters": petdl(batches=Clusters(10)),
    "neighbours": neighbours(),
}
# Self-training checks its rows before a pipeline in it encodes them; a representation
# of each private row alone takes seconds.
OF_NUMBERS = ("self-training", "neighbours")


def fit(kind, **changes):
    estimator = clone(FITS[kind]).set_params(**changes)
    groups = {"groups": GROUPS} if changes.get("privacy_unit") == "group" else {}
    table = TABLE[["age", "smoker"]].astype(int) if kind in OF_NUMBERS else TABLE
    if kind in OF_NUMBERS:
        domain = {"age": (17, 90), "smoker": [0, 1]}
        estimator.set_params(synthetic__domain=domain)
    return estimator.fit(table, Y, **groups), table


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["row", "group"])
@pytest.mark.parametrize("kind", FITS)
def test_a_model_is_learned_without_public_rows_and_without_a_warning(kind, unit):
    more = {"n_groups": 300} if (kind, unit) == ("newton", "group") else {}
    fitted, table = fit(kind, privacy_unit=unit, **more)
    assert roc_auc_score(Y, fitted.predict_proba(table)[:, 1]) > 0.7
    assert type(fitted.mechanism_) is TwoPartRelease
    shapes = {column: counts.shape for column, counts in fitted.marginals_.items()}
    wanted = {column: SHAPES[column] for column in table.columns}
    assert shapes == wanted
    total = len(np.unique(GROUPS)) if unit == "group" else len(Y)
    for counts in fitted.marginals_.values():
        assert counts.sum() == pytest.approx(total, abs=6 * 3 * np.sqrt(counts.size))


def test_a_newton_fit_is_within_the_epsilon_that_was_asked_for():
    clf = DPNewtonClassifier(
        epsilon=4.0, synthetic=PrivateMarginals(DOMAIN), random_state=0
    ).fit(TABLE, Y)
    assert type(clf.mechanism_.mechanism) is NewtonSteps
    assert 3.99 < clf.privacy_spent_.epsilon <= 4
    assert clf.score(TABLE, Y) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "share", "n_coordinates"),
    [(0.5, 0.95, 2), (8.0, 0.7, 7)],  # six columns with their sum, and a constant
)
def test_the_noise_decides_about_a_coefficient_for_each_column(
    epsilon, share, n_coordinates
):
    clf = DPNewtonClassifier(epsilon=epsilon, synthetic=PrivateMarginals(DOMAIN))
    planned = plan(clf, TABLE, Y)
    assert planned.n_coordinates == n_coordinates
    release = clf.fit(TABLE, Y).mechanism_
    total = release.cost(0, 2).mu ** 2
    assert release.counts.mu**2 / total == pytest.approx(share, abs=0.02)
    assert len(clf.coefficients_) <= n_coordinates


@pytest.mark.slow
def test_a_published_model_of_log_odds_predicts_as_before(tmp_path):
    clf = DPNewtonClassifier(epsilon=8.0, synthetic=PrivateMarginals(DOMAIN))
    clf.fit(TABLE, Y)
    assert type(clf.representation_) is LogOdds
    clf.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    assert_array_equal(published.predict_proba(TABLE), clf.predict_proba(TABLE))


@pytest.mark.slow
def test_odd_values_of_rows_are_predicted_and_learned_from_without_an_error():
    odd = TABLE.astype({"age": float})
    odd.loc[:3, "age"] = [np.nan, np.inf, -np.inf, 1e308]
    odd.loc[4:6, "sex"] = ["?", None, "M"]
    clf = DPNewtonClassifier(epsilon=8.0, synthetic=PrivateMarginals(DOMAIN))
    assert np.isfinite(clf.fit(odd, Y).predict_proba(odd)).all()


ADULT_DOMAIN = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 1, 5000, 10_000, 100_000),
    "capital-loss": (0, 1, 1500, 2500, 5000),
    "hours-per-week": (1, 99),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("n_rows", "epsilon", "n_fits"),
    [(2000, 0.5, 6), (20_000, 2.0, 2), (2000, 2.0, 6), (20_000, 0.5, 6)],
)
def test_it_ranks_rows_no_worse_than_naive_bayes(data_set, n_rows, epsilon, n_fits):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    names = [name for name in X if X[name].dtype == "category" or name in ADULT_DOMAIN]
    X, y = X[names], (y == ">50K").to_numpy().astype(int)
    X_test, y_test = X[25_000:33_000], y[25_000:33_000]

    def auc(clf):
        clf.fit(X[:n_rows], y[:n_rows])
        return roc_auc_score(y_test, clf.predict_proba(X_test)[:, 1])

    synthetic = PrivateMarginals(ADULT_DOMAIN)
    newton, bayes = (
        np.mean([auc(make(seed)) for seed in range(n_fits)])
        for make in (
            lambda seed: DPNewtonClassifier(
                epsilon=epsilon, synthetic=synthetic, classes=[0, 1], random_state=seed
            ),
            lambda seed: DPNaiveBayesClassifier(
                ADULT_DOMAIN, epsilon=epsilon, classes=[0, 1], random_state=seed
            ),
        )
    )
    assert newton > bayes - 0.01
    assert newton > (0.8 if n_rows == 2000 else 0.87)


@pytest.mark.thorough
def test_a_rare_class_is_predicted_as_often_as_it_is(data_set):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    names = [name for name in X if X[name].dtype == "category" or name in ADULT_DOMAIN]
    is_rich = (y == ">50K").to_numpy()
    kept = np.flatnonzero(~is_rich | (np.arange(len(y)) % 6 == 0))
    X, y = X.iloc[kept][names], is_rich[kept].astype(int)

    def predicted(seed):
        synthetic = PrivateMarginals(ADULT_DOMAIN)
        clf = DPNewtonClassifier(synthetic=synthetic, classes=[0, 1], random_state=seed)
        return clf.fit(X[:7000], y[:7000]).predict(X[7000:15_000]).mean()

    share = y[7000:15_000].mean()
    assert share == pytest.approx(0.05, abs=0.005)
    # On drawn rows as they are, about 1.5 times the share is predicted.
    assert np.mean([predicted(seed) for seed in range(3)]) == pytest.approx(
        share, rel=0.25
    )
