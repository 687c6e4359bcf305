"""Mechanisms that state no distribution of their answers, or a false one."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.inspection import audit_mechanism, plan
from sklearn_pate.mechanisms import PluralityMechanism
from tests.private import Plurality

ALL_VOTES, ONE_MOVED = [3, 2], [2, 3]


class NoisyMax(PluralityMechanism):
    """Report noisy max with two-sided geometric noise; one answer is 2c-private."""

    noise_parameters = ("c",)

    def __init__(self, c=None, *, claimed_share=1.0):
        self.c = c
        self.claimed_share = claimed_share

    def _answer(self, counts, noise):
        return noise.argmax(counts + noise.discrete_laplace(self.c, counts.shape))

    def _with_scale(self, scale):
        return clone(self).set_params(c=1 / scale)

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return self._ceiling(orders) * n_answers

    def _ceiling(self, orders):
        return pure_dp_curve(2 * self.c * self.claimed_share, orders)

    def _guarantee(self):
        return {"pure_epsilon": 2 * self.c}


class Law(Plurality):
    """Softmax of the counts, with its logarithm shifted."""

    points_per_move = 10

    def __init__(self, c, shift=0.0):
        self._c, self._shift = c, shift

    def log_probabilities(self, values, sizes):
        scores = self._c * values
        return scores - logsumexp(scores, b=sizes, axis=-1, keepdims=True) + self._shift


class WithFalseLaw(NoisyMax):
    """Its answers have another distribution."""

    def _plurality(self):
        return Law(2 * self.c)


class WithoutSum(NoisyMax):
    """Its probabilities sum to 2."""

    def _plurality(self):
        return Law(self.c, shift=np.log(2))


class ClassSeven(NoisyMax):
    """It answers with a class that does not exist."""

    def _answer(self, counts, noise):
        return np.full(len(counts), 7)


@pytest.mark.slow
def test_a_fit_is_calibrated_and_its_analysis_is_the_worst_case():
    X, y = make_blobs(800, centers=3, random_state=0)
    pate = PATEClassifier(
        GaussianNB(), mechanism=NoisyMax(), n_teachers=40, n_queries=20, epsilon=4.0
    )
    pate.fit(X[:600], y[:600], X_public=PublicData(X[600:]))
    assert 3.99 < pate.privacy_spent_.epsilon <= 4.0
    analysis = pate.privacy_analysis_
    worst = pate.mechanism_.cost(20, 3).curve
    assert analysis.epsilon == pytest.approx(worst.quiet_epsilon(1e-5), rel=1e-3)
    assert not analysis.exceeds_claim


def test_a_plan_has_no_label_accuracy():
    planned = plan(PATEClassifier(n_teachers=250, n_queries=100, mechanism=NoisyMax()))
    assert not hasattr(planned, "at_margins")
    assert not hasattr(planned, "margin_for_90")
    assert 0.99 < planned.epsilon <= 1
    assert "NoisyMax" in str(planned)


def test_figures_that_need_the_distribution_say_so():
    mechanism = NoisyMax(c=0.5)
    message = r"which NoisyMax does not state; implement _plurality"
    for compute in (
        lambda: mechanism.sanitized_cost([[5, 2]], n_teachers=7, delta=1e-5),
        lambda: mechanism.enumerated_curve([5, 2]),
    ):
        with pytest.raises(ValueError, match=message):
            compute()


def test_an_audit_computes_no_exact_cost_and_does_not_contradict_a_true_claim():
    result = audit_mechanism(NoisyMax(c=0.5), ALL_VOTES, ONE_MOVED, n_trials=20_000)
    assert result.exact_share is None
    assert result.answers_follow_law is None
    assert not result.contradicted


@pytest.mark.slow
def test_the_trials_contradict_a_third_of_the_cost():
    result = audit_mechanism(
        NoisyMax(c=1.0, claimed_share=1 / 3), ALL_VOTES, ONE_MOVED, n_trials=50_000
    )
    assert result.contradicted


def test_answers_with_another_distribution_are_found():
    result = audit_mechanism(WithFalseLaw(c=0.5), ALL_VOTES, ONE_MOVED, n_trials=5_000)
    assert result.answers_follow_law is False
    assert result.contradicted
    assert "do not have the distribution that the mechanism states" in str(result)


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (WithoutSum(c=0.5), r"votes \[3, 2\] that sum to 2, not to 1"),
        (ClassSeven(c=0.5), r"answered 7, which is neither a class index from 0 to 1"),
    ],
)
def test_impossible_laws_and_answers_are_refused(mechanism, message):
    with pytest.raises(ValueError, match=message):
        audit_mechanism(mechanism, ALL_VOTES, ONE_MOVED, n_trials=100)
