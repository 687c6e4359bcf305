"""Queries chosen before any answer."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import (
    QuerySession,
    RandomQueries,
    RepresentativeQueries,
)
from tests.private import PUBLIC_REPRESENTATION


def session_about(X, n_queries, *, seed=0, answer=None):
    return QuerySession(
        answer or (lambda rows, probabilities: np.zeros(len(rows), int)),
        X,
        LogisticRegression(),
        n_classes=3,
        n_queries=n_queries,
        seed=seed,
        features=X,
    )


@pytest.mark.parametrize("strategy", [RandomQueries(), RepresentativeQueries()])
def test_all_queries_are_made_each_on_another_row(strategy, blobs):
    session = session_about(blobs[2], 40)
    strategy.query(session)
    assert len(set(session.queried.tolist())) == 40


@pytest.mark.parametrize("strategy", [RandomQueries(), RepresentativeQueries()])
def test_the_choice_follows_the_seed(strategy, blobs):
    def chosen(seed):
        return strategy.choose(session_about(blobs[2], 20, seed=seed), 20).tolist()

    assert chosen(0) == chosen(0)
    assert chosen(0) != chosen(1)


def test_representative_rows_are_central():
    rng = np.random.RandomState(0)
    centers = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0]])
    X = np.repeat(centers, 50, axis=0) + rng.standard_normal((200, 2))
    rows = RepresentativeQueries().choose(session_about(X, 4), 4)
    assert sorted(rows // 50) == [0, 1, 2, 3]
    middles = X.reshape(4, 50, 2).mean(axis=1)[rows // 50]
    assert np.all(np.linalg.norm(X[rows] - middles, axis=1) < 1)


def test_identical_rows_are_followed_by_random_ones():
    X = np.zeros((30, 2))
    rows = RepresentativeQueries().choose(session_about(X, 5), 5)
    assert len(set(rows.tolist())) == 5


def fit(blobs, **parameters):
    X, y, X_public, _ = blobs
    parameters = {"n_queries": 20, "epsilon": None} | parameters
    return PATEClassifier(
        LogisticRegression(),
        n_teachers=20,
        mechanism=GNMax(sigma=1),
        random_state=0,
        **parameters,
    ).fit(X, y, X_public=PublicData(X_public))


@pytest.mark.parametrize(
    ("n_queries", "strategy"), [(29, RepresentativeQueries), (30, RandomQueries)]
)
def test_auto_queries_representative_rows_below_a_tenth_of_them(
    blobs, n_queries, strategy
):
    assert type(fit(blobs, n_queries=n_queries).query_strategy_) is strategy


@pytest.mark.parametrize("kind", ["text", "sparse", "missing"])
def test_auto_queries_random_rows_if_rows_cannot_be_compared(kind):
    import pandas as pd
    from scipy import sparse as sp

    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 2))
    y = (X[:, 0] > 0).astype(int)
    teacher = DecisionTreeClassifier()
    if kind == "sparse":
        X = sp.csr_matrix(X)
    elif kind == "missing":
        X[::7, 1] = np.nan
    else:
        from sklearn.compose import make_column_transformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        X = pd.DataFrame({"sign": np.where(y, "plus", "minus"), "other": X[:, 1]})
        teacher = make_pipeline(
            make_column_transformer((OneHotEncoder(), ["sign"])), teacher
        )
    pate = PATEClassifier(teacher, n_teachers=5, n_queries=9, random_state=0)
    pate.set_params(epsilon=None, mechanism=GNMax(sigma=0.1))
    public = PublicData(X[:100])
    assert type(pate.fit(X[100:], y[100:], X_public=public).query_strategy_) is (
        RandomQueries
    )
    pate.set_params(query_strategy="representative")
    with pytest.raises(ValueError, match="'representative' compares public rows"):
        pate.fit(X[100:], y[100:], X_public=public)


@pytest.mark.thorough
def test_few_typical_rows_teach_more_than_few_random_ones(digits):
    X, y = digits[0] / 16, digits[1]
    pate = PATEClassifier(
        LogisticRegression(max_iter=1000),
        n_teachers=10,
        n_queries=25,
        mechanism=GNMax(sigma=0.1),
        epsilon=None,
    )

    def score(strategy):
        scores = []
        for seed in range(3):
            pate.set_params(query_strategy=strategy, random_state=seed)
            pate.fit(X[:900], y[:900], X_public=PublicData(X[900:1500]))
            scores.append(pate.score(X[1500:], y[1500:]))
        return np.mean(scores)

    assert score("representative") > score("random") + 0.03


class RemembersItsRows(PCA):
    """A representation that would leak: features of one row depend on the others."""

    def transform(self, X):
        return X - X.mean(axis=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # a teacher that cannot converge
def test_one_changed_row_changes_one_teacher_whatever_the_representation_does(blobs):
    X, y, X_public, _ = blobs

    def counts(X):
        pate = PATEClassifier(
            LogisticRegression(),
            n_teachers=6,
            representation=RemembersItsRows(2),
            mechanism=GNMax(sigma=0.1),
            epsilon=None,
            query_strategy="random",
            n_queries=300,
            random_state=0,
        ).fit(X, y, X_public=PublicData(X_public))
        in_order = np.argsort(pate.queried_indices_)
        return pate.privacy_analysis_.counts[in_order]

    changed = X.copy()
    changed[17] = 1e4
    moved = np.abs(counts(X) - counts(changed)).sum(axis=1)
    assert moved.max() == 2  # one vote left a class for another
    assert moved.any()


def test_a_representation_may_come_fitted(digits):
    X, y = digits[0] / 16, digits[1]
    frozen = FrozenEstimator(PCA(7).fit(X[900:1400]))
    pate = PATEClassifier(
        LogisticRegression(max_iter=1000),
        n_teachers=5,
        representation=frozen,
        mechanism=GNMax(sigma=0.1),
        epsilon=None,
        n_queries=40,
        random_state=0,
    ).fit(X[:900], y[:900], X_public=PublicData(X[900:1400]))
    assert pate.representation_.estimator is frozen.estimator


def test_teachers_learn_from_the_representation_and_the_student_from_the_rows(digits):
    X, y = digits[0] / 16, digits[1]
    pate = PATEClassifier(
        LogisticRegression(max_iter=1000),
        n_teachers=5,
        representation=PCA(7),
        mechanism=GNMax(sigma=1),
        epsilon=None,
        n_queries=100,
        random_state=0,
    ).fit(X[:900], y[:900], X_public=PublicData(X[900:1400]))
    assert pate.representation_.components_.shape == (7, 64)
    assert pate.student_.n_features_in_ == 64
    np.testing.assert_allclose(pate.representation_.mean_, X[900:1400].mean(axis=0))
    assert PUBLIC_REPRESENTATION in pate.privacy_spent_.assumptions
    assert pate.score(X[1400:], y[1400:]) > 0.7
