"""Recalibrated models: their probabilities, their statement, their estimator API."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_pate.learners import DPNaiveBayesClassifier
from sklearn_pate.metrics import RecalibratedClassifier, private_metrics
from tests.metrics.scores import FirstColumn

pytestmark = pytest.mark.slow


def test_overconfident_scores_are_corrected(measured):
    X, y, metrics = measured
    model = FirstColumn()
    better = metrics.recalibrated(model)
    assert better.slopes_[0] == pytest.approx(0.5, abs=0.1)
    assert better.intercepts_[0] == pytest.approx(0, abs=0.2)
    before, after = (log_loss(y, one.predict_proba(X)) for one in (model, better))
    assert after < before - 0.05
    np.testing.assert_allclose(better.predict_proba(X).sum(axis=1), 1)


def test_each_of_several_classes_is_corrected(of_three_classes):
    X, y, metrics = of_three_classes
    better = metrics.recalibrated(FirstColumn(3))
    probabilities = better.predict_proba(X)
    assert better.slopes_.shape == better.intercepts_.shape == (3,)
    assert probabilities.shape == X.shape
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert log_loss(y, probabilities) < log_loss(y, X)


def test_the_largest_corrected_probability_is_predicted(measured):
    X, _, metrics = measured
    better = metrics.recalibrated(FirstColumn())
    most = better.predict_proba(X).argmax(axis=1)
    assert better.predict(X).tolist() == better.classes_[most].tolist()
    assert np.isfinite(better.predict_proba([[0.0], [1.0]])).all()


def test_without_a_statement_of_the_model_its_rows_are_assumed_to_be_public(measured):
    metrics = measured[2]
    spent = metrics.recalibrated(FirstColumn()).privacy_spent_
    assert spent.epsilon == metrics.privacy_spent_.epsilon
    assert spent.assumptions[:-1] == metrics.privacy_spent_.assumptions
    assert (
        "rows that the recalibrated model was fitted on are public"
        in spent.in_one_line()
    )
    assert "rows that the model was fitted on" in spent.facts.unprotected


@pytest.fixture(scope="module")
def private_model(measured):
    X, y, _ = measured
    model = DPNaiveBayesClassifier((0, 1), classes=[0, 1])
    return model.fit(X[:500], y[:500])


def test_the_statements_of_model_and_metrics_add_up(measured, private_model):
    X, y, _ = measured
    metrics = private_metrics(private_model, X[500:], y[500:], epsilon=1.0)
    spent = metrics.recalibrated(private_model.publish()).privacy_spent_
    assert max(1, metrics.privacy_spent_.epsilon) < spent.epsilon <= 2
    total = private_model.privacy_spent_ + metrics.privacy_spent_
    assert spent.epsilon == total.epsilon
    assert {*private_model.privacy_spent_.assumptions} < {*spent.assumptions}


def test_statements_of_two_units_are_refused(measured, private_model):
    X, y, _ = measured
    metrics = private_metrics(
        private_model, X[500:], y[500:], epsilon=1.0, groups=np.arange(3500)
    )
    with pytest.raises(ValueError, match=r"unit='row' .* do not add up"):
        metrics.recalibrated(private_model)


def test_another_model_is_refused(measured, of_three_classes):
    for other in (of_three_classes[2], GaussianNB().fit(*measured[:2]), object()):
        with pytest.raises(ValueError, match="is not the model of these metrics; pass"):
            measured[2].recalibrated(other)


def test_counts_below_the_noise_correct_nothing(hidden):
    with pytest.raises(ValueError, match="The noise hides the number of rows"):
        hidden.recalibrated(FirstColumn())


def test_it_is_a_fitted_classifier_of_scikit_learn(measured):
    X, y, metrics = measured
    better = metrics.recalibrated(FirstColumn())
    check_is_fitted(better)
    assert is_classifier(better)
    assert clone(better) is better
    assert better.get_params(deep=False) == {"estimator": better.estimator} | {
        "metrics": metrics
    }
    assert better.n_features_in_ == 1
    assert not hasattr(better, "feature_names_in_")
    assert get_tags(better).input_tags == get_tags(FirstColumn()).input_tags
    assert repr(better).startswith("RecalibratedClassifier(estimator=FirstColumn()")
    copied = pickle.loads(pickle.dumps(better))
    assert copied.predict_proba(X[:9]).tolist() == better.predict_proba(X[:9]).tolist()
    assert better.score(X, y) > 0.7
    pipeline = make_pipeline(FrozenEstimator(better)).fit(X, y)
    assert pipeline.predict(X[:9]).tolist() == better.predict(X[:9]).tolist()


def test_it_cannot_be_fitted(measured):
    X, y, metrics = measured
    with pytest.raises(TypeError, match="cannot be fitted; measure another model"):
        RecalibratedClassifier(FirstColumn(), metrics).fit(X, y)
