"""Fitted private classifiers show their statement in notebooks, and link its report."""

import base64
import html
import re

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_html_repr

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import (
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.publication._published import ReportLinkMixin
from tests.inspection.report.reported import BOUNDS, linear, pate, rows

LINK = re.compile(
    r'<a download="privacy-report.html" '
    r'href="data:text/html;charset=utf-8;base64,([A-Za-z0-9+/=]+)">'
)


def linked(shown):
    """Return the page behind the only link."""
    [content] = LINK.findall(shown)
    return base64.b64decode(content).decode()


@pytest.mark.slow
@pytest.mark.parametrize("fit", [pate, linear, lambda: pate().publish()])
def test_the_link_holds_the_report(fit):
    clf = fit()
    page = PrivacyReport.from_estimator(clf).to_html()
    assert linked(clf._repr_html_()) == page
    assert linked(clf._repr_mimebundle_()["text/html"]) == page
    assert html.escape(repr(clf.privacy_spent_)) in clf._repr_html_() or (
        html.escape(str(clf.privacy_spent_)) in clf._repr_html_()
    )


def test_a_search_links_the_report_of_all_of_it():
    X, y = rows()
    learner = DPLogisticRegression(feature_bounds=BOUNDS)
    search = PrivateSearchCV(learner, {"C": [0.1, 1.0]}, mean_n_trials=2)
    assert not LINK.search(search._repr_html_())
    page = linked(search.fit(X, y)._repr_html_())
    assert page == PrivacyReport.from_estimator(search).to_html()
    assert "over 2 candidates" in page


@pytest.mark.parametrize(
    "kind",
    [
        *(PATEClassifier, PETDLClassifier, PrivateKNNClassifier, PrivateSearchCV),
        *(DPLogisticRegression, DPLinearSVC, DPSGDClassifier, DPNaiveBayesClassifier),
        DPNewtonClassifier,
    ],
)
def test_every_private_classifier_does_so(kind):
    assert issubclass(kind, ReportLinkMixin)


@pytest.mark.parametrize("clf", [PATEClassifier(), DPLogisticRegression()])
def test_before_a_fit_the_diagram_is_that_of_scikit_learn(clf):
    both = clf._repr_html_(), estimator_html_repr(clf)
    of_ours, of_theirs = (re.sub(r"-id-\d+", "", shown) for shown in both)
    assert of_ours == of_theirs
    assert not LINK.search(PublishedClassifier()._repr_html_())


def test_a_clone_has_no_link():
    assert not LINK.search(clone(pate())._repr_html_())


def test_as_text_there_is_no_page():
    with sklearn.config_context(display="text"):
        assert not hasattr(pate(), "_repr_html_")
        assert set(pate()._repr_mimebundle_()) == {"text/plain"}


def test_what_is_linked_is_public_even_beside_a_ledger(tmp_path):
    X, y = rows()
    ledger = PrivacyLedger(tmp_path / "rows.sqlite", epsilon=8, delta=1e-5)
    clf = PATEClassifier(
        DecisionTreeClassifier(),
        n_teachers=20,
        n_queries=40,
        mechanism=GNMax(sigma=12),
        epsilon=None,
        ledger=ledger,
    )
    clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    page = linked(clf._repr_html_())
    assert "INTERNAL" not in page
    assert str(tmp_path) not in page
    assert ledger.entries()[0].who not in page


def test_a_damaged_estimator_is_shown_all_the_same():
    clf = clone(linear())
    clf.privacy_spent_ = "no statement"
    assert "DPLogisticRegression" in clf._repr_html_()
    clf = clone(linear())
    clf.privacy_spent_, clf.n_features_in_ = linear().privacy_spent_, np.nan
    assert not LINK.search(clf._repr_html_())
