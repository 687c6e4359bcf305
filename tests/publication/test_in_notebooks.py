"""Fitted private classifiers show their statement in notebooks."""

import html
import re

import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils import estimator_html_repr

from sklearn_pate import PATEClassifier, PublishedClassifier
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.model_selection import PrivateSearchCV
from tests.inspection.report.reported import BOUNDS, linear, pate, rows


@pytest.mark.slow
@pytest.mark.parametrize("fit", [pate, linear])
def test_a_fitted_classifier_shows_its_statement(fit):
    clf = fit()
    statement = f"<p>{html.escape(repr(clf.privacy_spent_))}</p>"
    assert clf._repr_html_().count(statement) == 1
    assert clf._repr_mimebundle_()["text/html"].count(statement) == 1


@pytest.mark.slow
def test_a_published_classifier_shows_its_statement():
    published = pate().publish()
    assert html.escape(str(published.privacy_spent_)) in published._repr_html_()


@pytest.mark.slow
def test_a_search_shows_the_statement_of_all_of_it():
    X, y = rows()
    learner = DPLogisticRegression(feature_bounds=BOUNDS)
    search = PrivateSearchCV(learner, {"C": [0.1, 1.0]}, mean_n_trials=2)
    assert "PrivacySpent" not in search._repr_html_()
    assert repr(search.fit(X, y).privacy_spent_) in search._repr_html_()


@pytest.mark.parametrize("clf", [PATEClassifier(), DPLogisticRegression()])
def test_before_a_fit_the_diagram_is_that_of_scikit_learn(clf):
    both = clf._repr_html_(), estimator_html_repr(clf)
    of_ours, of_theirs = (re.sub(r"-id-\d+", "", shown) for shown in both)
    assert of_ours == of_theirs
    assert "PrivacySpent" not in PublishedClassifier()._repr_html_()


@pytest.mark.slow
def test_a_clone_shows_no_statement():
    assert "PrivacySpent" not in clone(pate())._repr_html_()


@pytest.mark.slow
def test_as_text_there_is_no_page():
    with sklearn.config_context(display="text"):
        assert not hasattr(pate(), "_repr_html_")
        assert set(pate()._repr_mimebundle_()) == {"text/plain"}
