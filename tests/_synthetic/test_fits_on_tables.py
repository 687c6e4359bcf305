"""All fits on rows drawn from noisy counts of a table of mixed columns."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import SelfTrainingClassifier

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PrivateMarginals
from sklearn_pate.learners import PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    InteractiveGNMax,
    MeanScores,
    NoisyHistogram,
)
from sklearn_pate.mechanisms._noisy_sum import TwoPartRelease
from sklearn_pate.mechanisms._noisy_training import NewtonSteps
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

COMMON = {"epsilon": None, "random_state": 0, "synthetic": SYNTHETIC}


def of_votes(teacher=None, **changes):
    given = {"n_teachers": 10, "n_queries": 40, "mechanism": GNMax(sigma=1.0)}
    given |= {"student": model()} | COMMON | changes
    return PATEClassifier(teacher or model(), **given)


def on_numbers(**changes):
    """Compare public rows as numbers, which teachers and student get."""
    return of_votes(LogisticRegression(), representation=numbers(), **changes)


def petdl(**changes):
    given = {"n_teachers": 10, "public_batch_size": 10, "noise_scale": 0.3}
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
    "random batches": petdl(batches="random"),
    "clusters": petdl(batches="cluster"),
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
    assert fitted.score(table, Y) > 0.6
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
