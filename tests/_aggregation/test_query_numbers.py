"""Number of queries of networks and images, by public numbers."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import SelfTrainingClassifier

from sklearn_pate import PATEClassifier, PrivacyUtilityWarning, PublicData
from sklearn_pate.mechanisms import GNMax
from tests.private import VotesWithLead, design_fit

IMAGES, TABLE = np.zeros((3000, 4, 4)), np.zeros((3000, 16))


def n_queries(X_public, n_teachers, n_classes=10, **parameters):
    parameters = {"student": LogisticRegression(), "mechanism": "gnmax"} | parameters
    pate = PATEClassifier(LogisticRegression(), n_teachers=n_teachers, **parameters)
    design = design_fit(
        pate, X_public, n_public=len(X_public), n_rows=60_000, n_classes=n_classes
    )
    return design.n_queries


@pytest.mark.slow
@pytest.mark.parametrize("n_teachers", [150, 300, 600])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_nine_of_ten_answers_about_images_are_right(n_teachers, n_classes):
    n = n_queries(IMAGES, n_teachers, n_classes)
    assert 20 < n <= 2000
    if n < 2000:
        noise = GNMax().prepared(
            epsilon=1.0, n_teachers=n_teachers, n_queries=n, n_classes=n_classes
        )
        assert 0.9 <= VotesWithLead(noise, n_teachers, n_classes).at(1).right < 0.995


def test_more_teachers_or_epsilon_allow_more_queries_and_tables_average():
    numbers = [n_queries(IMAGES, n) for n in (10, 100, 200, 400, 5000)]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (20, 2000)
    assert n_queries(IMAGES, 100) < n_queries(IMAGES, 100, epsilon=2.0)
    assert n_queries(TABLE, 10) == 2000
    learns_from_all = SelfTrainingClassifier(LogisticRegression())
    for student in (None, learns_from_all):
        assert n_queries(IMAGES, 400, student=student) == 100


def flat(X):
    return X.reshape(len(X), -1)


@pytest.mark.slow
def test_too_many_queries_about_images_warn_with_a_number_that_works():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(3000, 4, 4)), np.arange(3000) % 3
    clf = PATEClassifier(
        make_pipeline(FunctionTransformer(flat), LogisticRegression()),
        make_pipeline(FunctionTransformer(flat), LogisticRegression()),
        n_teachers=60,
        n_queries=1000,
        classes=[0, 1, 2],
        random_state=0,
    )
    data = {"X": X[:1500], "y": y[:1500], "X_public": PublicData(X[1500:])}
    with pytest.warns(PrivacyUtilityWarning, match="With n_queries=1000, most") as all_:
        clf.plan_privacy(**data)
    [text] = [str(one.message) for one in all_ if "most answers" in str(one.message)]
    works = int(text.partition("Use n_queries=")[2].partition(",")[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.set_params(n_queries=works).plan_privacy(**data)
    assert not any("most answers" in str(one.message) for one in caught)
