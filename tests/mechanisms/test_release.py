"""mechanism="histogram": all noisy votes, at their cost, for students that use them."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax, NoisyHistogram
from sklearn_pate.students import DistillationClassifier
from tests.private import soften


class SeesTargets(LogisticRegression):
    accepts_soft_labels = True

    def fit(self, X, y):
        self.targets_ = y
        return super().fit(X, y.argmax(axis=1) if y.ndim == 2 else y)


class SeesUnlabeled(SeesTargets):
    accepts_unlabeled = True

    def fit(self, X, y):
        labeled = y.any(axis=1)
        super().fit(X[labeled], y[labeled])
        self.targets_ = y
        return self


def fit(blobs, student=None, **parameters):
    X, y, X_public, _ = blobs
    return PATEClassifier(
        LogisticRegression(),
        student,
        **{
            "n_teachers": 20,
            "mechanism": NoisyHistogram(sigma=2),
            "epsilon": None,
            "n_queries": 30,
            "random_state": 0,
        }
        | parameters,
    ).fit(X, y, X_public=PublicData(X_public))


def test_the_histograms_are_the_votes_with_noise(blobs):
    pate = fit(blobs, n_queries=300)
    noise = pate.histograms_ - pate.privacy_analysis_.counts
    assert noise.shape == (300, 3)
    # The mean square of 900 draws: a standard deviation of 0.19 around 4.
    assert 3 < np.mean(noise**2) < 5
    np.testing.assert_array_equal(
        pate.histograms_[np.arange(300), pate.answers_], pate.histograms_.max(axis=1)
    )


@pytest.mark.slow
def test_it_costs_more_than_the_answers(blobs):
    histogram, answers = fit(blobs), fit(blobs, mechanism=GNMax(sigma=2))
    assert histogram.privacy_spent_.epsilon > 1.15 * answers.privacy_spent_.epsilon
    assert "NoisyHistogram" in histogram.privacy_spent_.mechanism
    assert not hasattr(answers, "histograms_")


@pytest.mark.slow
def test_at_equal_epsilon_it_has_more_noise(blobs):
    histogram, answers = (
        fit(blobs, epsilon=2.0, mechanism=one).mechanism_.parts[1]
        for one in ("histogram", "gnmax")
    )
    assert histogram.sigma > 1.1 * answers.sigma


def test_a_student_of_soft_labels_gets_them(blobs):
    pate = fit(blobs, SeesTargets())
    np.testing.assert_allclose(pate.student_.targets_, soften(pate.histograms_))


def test_a_student_of_all_rows_gets_zeros_for_rows_without_a_query(blobs):
    pate = fit(blobs, SeesUnlabeled())
    targets = pate.student_.targets_
    np.testing.assert_allclose(targets[pate.queried_indices_], soften(pate.histograms_))
    assert np.count_nonzero(targets.any(axis=1)) == 30


def test_any_other_student_learns_from_the_answers(blobs):
    assert fit(blobs, LogisticRegression()).score(*blobs[2:]) > 0.8


def test_a_distilled_student_end_to_end(blobs):
    student = DistillationClassifier(LogisticRegression(), temperature=2)
    # With few queries, one draw of the noise in twenty is an unlucky one.
    pate = fit(blobs, student, n_queries=150)
    assert pate.score(*blobs[2:]) > 0.8
    revived = pickle.loads(pickle.dumps(pate))
    np.testing.assert_array_equal(revived.histograms_, pate.histograms_)


def test_histograms_have_no_smaller_local_cost_and_are_not_sanitized(blobs):
    pate = fit(blobs)
    analysis = pate.privacy_analysis_
    assert analysis.epsilon == pytest.approx(pate.privacy_spent_.epsilon, rel=0.02)
    with pytest.raises(TypeError, match="does not depend on the votes"):
        analysis.sanitize()
