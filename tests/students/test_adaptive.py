"""Queries that depend on the answers so far."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from sklearn_pate import BudgetExceededError, PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax, InteractiveGNMax
from sklearn_pate.students import (
    ExpertQueries,
    InteractiveQueries,
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    UncertaintyQueries,
)
from tests.cases import thorough_but
from tests.private import OneExpertPerClass

STRATEGIES = [UncertaintyQueries, ExpertQueries, InteractiveQueries]


class Answers:
    """Correct answers, and a record of the queries."""

    def __init__(self, y):
        self.y = y
        self.rows = []
        self.probabilities = []

    def __call__(self, rows, probabilities=None):
        self.rows.append(rows)
        self.probabilities.append(probabilities)
        return self.y[rows]


def query(strategy, X, y, n_queries, seed=0):
    answers = Answers(y)
    session = QuerySession(
        answers,
        X,
        LogisticRegression(),
        n_classes=int(y.max()) + 1,
        n_queries=n_queries,
        seed=seed,
        features=X,
    )
    strategy.query(session)
    return answers


@pytest.mark.parametrize("kind", STRATEGIES)
@pytest.mark.parametrize("n_queries", [1, 3, 40, 300])
def test_all_queries_are_made_and_no_row_is_queried_twice(kind, n_queries, blobs):
    answers = query(kind(n_rounds=4), *blobs[2:], n_queries)
    rows = np.concatenate(answers.rows)
    assert len(rows) == len(set(rows.tolist())) == n_queries
    assert len(answers.rows) == min(4, n_queries)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_strategy_follows_the_seed_and_the_answers(kind, digits):
    X, y = digits[0][:300] / 16, digits[1][:300]

    def rows(y, seed):
        return np.concatenate(query(kind(n_rounds=3), X, y, 60, seed).rows).tolist()

    assert rows(y, 0) == rows(y, 0)
    assert rows(y, 0) != rows(y, 1)
    assert (rows(y, 0) != rows((y + 1) % 2, 0)) is (kind is not InteractiveQueries)


def test_the_first_round_may_be_of_typical_rows(blobs):
    strategy = UncertaintyQueries(n_rounds=2, first=RepresentativeQueries())
    assert strategy.needs_features
    assert not UncertaintyQueries().needs_features
    first = query(strategy, *blobs[2:], 20).rows[0]
    assert set(first) != set(
        query(UncertaintyQueries(n_rounds=2), *blobs[2:], 20).rows[0]
    )


def line(n=201):
    """Two classes that meet in the middle of a line."""
    X = np.linspace(-1, 1, n)[:, np.newaxis]
    return X, (X[:, 0] > 0).astype(int)


def test_uncertainty_queries_the_rows_with_the_least_margin(digits):
    X, y = digits[0][:300] / 16, digits[1][:300]
    first, second = query(UncertaintyQueries(n_rounds=2), X, y, 40).rows
    student = LogisticRegression().fit(X[first], y[first])
    *_, runner_up, best = np.sort(student.predict_proba(X), axis=1).T
    margins = best - runner_up
    left = np.setdiff1d(np.arange(len(X)), first)
    queried, not_queried = margins[second], margins[np.setdiff1d(left, second)]
    assert queried.max() <= not_queried.min()


def test_experts_query_rows_with_several_possible_classes_and_no_confident_expert(
    digits,
):
    X, y = digits[0][:600] / 16, digits[1][:600]
    strategy = ExpertQueries(n_rounds=2, n_doubtful=2)
    first, second = query(strategy, X, y, 120).rows
    scores = np.column_stack(
        [
            LogisticRegression().fit(X[first], y[first] == one).predict_proba(X)[:, 1]
            for one in np.unique(y[first])
        ]
    )
    in_question = (scores.max(axis=1) <= 0.9) & ((scores > 0.1).sum(axis=1) >= 2)
    left = np.setdiff1d(np.arange(len(X)), first)
    wanted = min(60, np.count_nonzero(in_question[left]))
    assert np.count_nonzero(in_question[second]) == wanted > 20


def test_each_class_has_an_expert_of_its_own_and_probabilities_do_not_add_up(digits):
    X, y = digits[0][:600] / 16, digits[1][:600]
    known = y != 3
    experts = OneExpertPerClass(LogisticRegression()).fit(X[known], y[known])
    assert 3 not in experts.classes_
    scores = experts.predict_proba(X)
    for place, one in enumerate(experts.classes_):
        alone = LogisticRegression().fit(X[known], y[known] == one)
        np.testing.assert_allclose(scores[:, place], alone.predict_proba(X)[:, 1])
    # No expert need be confident of a class that none has seen.
    assert scores[~known].sum(axis=1).min() < 0.5
    assert scores[~known].max(axis=1).mean() < scores[known].max(axis=1).mean() - 0.1


def test_experts_add_the_least_confident_rows_if_too_few_are_disputed():
    X, y = line()
    strategy = ExpertQueries(n_rounds=2, n_doubtful=3)  # there are two classes
    first, second = query(strategy, X, y, 40).rows
    student = LogisticRegression().fit(X[first], y[first])
    sureness = student.predict_proba(X).max(axis=1)
    left = np.setdiff1d(np.arange(len(X)), first)
    assert sureness[second].max() <= sureness[np.setdiff1d(left, second)].min()


def test_interactive_queries_have_the_students_probabilities_from_the_second_round_on(
    blobs,
):
    X, y = blobs[2:]
    answers = query(InteractiveQueries(n_rounds=3), X, y, 60)
    np.testing.assert_allclose(answers.probabilities[0], 1 / 3)
    rows, before = answers.rows[1], answers.rows[0]
    student = LogisticRegression().fit(X[before], y[before])
    np.testing.assert_allclose(
        answers.probabilities[1], student.predict_proba(X[rows]), atol=1e-6
    )


def test_a_class_that_was_never_answered_has_probability_zero(digits):
    X, y = digits[0][:200] / 16, digits[1][:200]
    keep = y < 3
    X, y = X[keep], y[keep]
    session = QuerySession(
        Answers(np.where(y == 1, 0, y)),
        X,
        LogisticRegression(),
        n_classes=5,
        n_queries=30,
        seed=0,
    )
    session.query(np.arange(30))
    probabilities = session.probabilities()
    assert probabilities.shape == (len(X), 5)
    assert np.all(probabilities[:, [1, 3, 4]] == 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def pate(digits, **parameters):
    X, y = digits[0] / 16, digits[1]
    defaults = {"mechanism": GNMax(sigma=0.3), "epsilon": None, "n_queries": 60}
    return PATEClassifier(
        LogisticRegression(max_iter=1000),
        n_teachers=30,
        random_state=0,
        **defaults | parameters,
    ).fit(X[:900], y[:900], X_public=PublicData(X[900:1400]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", thorough_but(["uncertainty"], ["uncertainty", "experts"])
)
def test_the_privacy_cost_is_that_of_as_many_random_queries(digits, strategy):
    adaptive, random = pate(digits, query_strategy=strategy), pate(digits)
    assert adaptive.privacy_spent_.epsilon == random.privacy_spent_.epsilon
    assert adaptive.privacy_analysis_.along_transcript
    assert not random.privacy_analysis_.along_transcript
    with pytest.raises(ValueError, match="depended on earlier answers"):
        adaptive.privacy_analysis_.sanitize()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The best order")  # little noise, a large epsilon
def test_interactive_end_to_end(digits):
    mechanism = InteractiveGNMax(0.4, 4, 4, confidence=0.8)
    clf = pate(digits, mechanism=mechanism, n_queries=200)
    assert isinstance(clf.query_strategy_, InteractiveQueries)
    analysis = clf.privacy_analysis_
    assert analysis.along_transcript
    assert analysis.optimal_epsilon is None
    assert analysis.epsilon <= clf.privacy_spent_.epsilon
    assert clf.score(digits[0][1400:] / 16, digits[1][1400:]) > 0.6
    assert clf.privacy_spent_.n_queries == 200


@pytest.mark.slow
def test_interactive_by_its_name_is_calibrated():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((3000, 2))
    y = (X[:, 0] > 0).astype(int)
    clf = PATEClassifier(
        LogisticRegression(),
        n_teachers=200,
        mechanism="interactive",
        n_queries=20,
        epsilon=2.0,
        random_state=0,
    ).fit(X[:2500], y[:2500], X_public=PublicData(X[2500:]))
    assert 1.9 < clf.privacy_spent_.epsilon <= 2.0
    assert clf.mechanism_.parts[1].n_teachers == 200


def test_uncertainty_finds_the_rows_that_teach_a_supervised_student():
    X, y = line(2001)

    def score(strategy):
        scores = []
        for seed in range(5):
            rows = np.concatenate(query(strategy, X, y, 20, seed).rows)
            student = LogisticRegression(C=1e4).fit(X[rows], y[rows])
            scores.append(student.score(X, y))
        return np.mean(scores)

    unconfident_first = UncertaintyQueries(student=LogisticRegression(C=1e4))
    assert score(unconfident_first) > score(RandomQueries()) + 0.01


def test_a_custom_strategy_cannot_query_a_row_twice(blobs):
    class Stubborn(QueryStrategy):
        def query(self, session):
            session.query(np.array([3, 4]))
            session.query(np.array([4, 5]))

    with pytest.raises(ValueError, match="queried a public row twice"):
        query(Stubborn(), *blobs[2:], 4)


@pytest.mark.slow
def test_only_clones_of_the_default_student_are_fitted(digits):
    students = []

    class Adaptive(UncertaintyQueries):
        def query(self, session):
            students.append(session.student)
            super().query(session)

    clf = pate(digits, query_strategy=Adaptive())
    assert type(clf.student_) is type(students[0])
    with pytest.raises(NotFittedError):
        check_is_fitted(students[0])


@pytest.mark.slow
def test_a_custom_strategy_cannot_exceed_the_number_of_queries(digits):
    class Greedy(QueryStrategy):
        def query(self, session):
            session.query(session.new_rows())

    with pytest.raises(
        BudgetExceededError, match="exceed the 60 of 60 queries that are left"
    ):
        pate(digits, query_strategy=Greedy())
