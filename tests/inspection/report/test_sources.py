"""Estimators with a report, and estimators without."""

import hashlib
import json
import re
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublicData,
    PublishedClassifier,
    privacy_leaks,
)
from sklearn_pate.accounting import RdpCurve
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLogisticRegression, PrivateKNNClassifier
from sklearn_pate.model_selection import PrivateSearchCV
from tests.inspection.report.reported import (
    BOUNDS,
    CANARY,
    QUALITY,
    Stated,
    every_format,
    linear,
    pate,
    report_on,
    rows,
)
from tests.private import FROZEN_IS_PUBLIC


@pytest.mark.slow
def test_a_published_model_and_one_read_from_a_file_have_the_same_report(tmp_path):
    pytest.importorskip("skops")
    published = pate().publish()
    published.save(tmp_path / "model.skops")
    read = PublishedClassifier.load(tmp_path / "model.skops")
    assert report_on(read).to_dict() == report_on(published).to_dict()
    of_fit = report_on(pate()).to_dict()
    assert of_fit["classifier"] == "PATEClassifier"
    # A PublishedClassifier was not fitted.
    of_fit |= {"classifier": None, "published": published.card["date"]}
    assert report_on(published).to_dict() == of_fit
    for text in every_format(report_on(published)).values():
        assert "PublishedClassifier" not in text


@pytest.fixture
def saved(tmp_path):
    pytest.importorskip("skops")
    published = pate().publish()
    published._card["date"] = "2024-02-29"
    path = tmp_path / CANARY / "model.skops"
    path.parent.mkdir()
    published.save(path)
    return published, path


def test_the_model_to_sign_for_is_named(saved):
    published, path = saved
    report = report_on(published, model_file=path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    facts = report.to_dict()
    assert facts["model_file"] == {"name": "model.skops", "sha256": sha256}
    assert facts["published"] == "2024-02-29"
    for text in every_format(report).values():
        assert CANARY not in text
    for text in (report.to_html(), report.to_markdown()):
        to_sign = text[text.index("Assumptions to sign") :]
        for name in ("model.skops", "2024-02-29", sha256):
            assert name in to_sign[: to_sign.index("Data protection")]
            assert name in to_sign[to_sign.rindex("Parameters") :]


@pytest.mark.slow
def test_the_file_of_another_model_is_refused(saved):
    published, path = saved
    another = pate(n_queries=41).publish()
    for clf, message in (
        (another, r"model_file='.*model\.skops' has another privacy card than clf"),
        (pate(), r"but clf is a PATEClassifier; pass the PublishedClassifier"),
    ):
        with pytest.raises(ValueError, match=message):
            report_on(clf, model_file=path)
    with pytest.raises(ValueError, match=r"model_file='m\.pickle' must end in '\.sk"):
        report_on(published, model_file="m.pickle")
    with pytest.raises(FileNotFoundError, match=r"other\.skops is missing"):
        report_on(published, model_file=path.with_name("other.skops"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ValueError, match="does not have the sha256"):
        report_on(published, model_file=path)


@pytest.mark.slow
def test_a_search_is_reported_on_as_a_whole():
    X, y = rows()
    learner = DPLogisticRegression(feature_bounds=BOUNDS)
    search = PrivateSearchCV(learner, {"C": [0.1, 1.0]}, mean_n_trials=2).fit(X, y)
    for clf in (search, search.best_estimator_):
        facts = report_on(clf).to_dict()
        assert facts["epsilon"] == search.privacy_spent_.epsilon
        assert facts["kind"] == "search"
        assert facts["model"] == "DPLogisticRegression"


@pytest.mark.slow
def test_neighbours_of_a_secret_sample_are_reported_on_as_such():
    X, y = rows()
    clf = PrivateKNNClassifier(n_queries=10, n_neighbors=30, epsilon=3.0)
    facts = report_on(clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))).to_dict()
    assert facts["kind"] == "neighbours"
    assert (facts["unit"], facts["relation"]) == ("row", "add-remove")


@pytest.mark.slow
@pytest.mark.parametrize("synthetic", [None, PrivateMarginals((-30, 30))])
def test_newton_steps_are_reported_on_as_such(synthetic):
    X, y = rows()
    public = {} if synthetic else {"X_public": PublicData(X[500:])}
    clf = DPNewtonClassifier(synthetic=synthetic, epsilon=4.0, random_state=0)
    facts = report_on(clf.fit(X[:500], y[:500], **public)).to_dict()
    assert (facts["kind"], facts["model"]) == ("newton", "ScoreFunction")
    assert facts["n_teachers"] is facts["n_queries"] is None


def test_steps_that_learn_in_front_void_the_guarantee():
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), clone(linear())).fit(X, y)
    facts = report_on(pipeline).to_dict()
    assert [one["what"] for one in facts["not_covered"]] == [
        str(leak) for leak in privacy_leaks(pipeline)
    ]
    assert facts["private"] is False
    assert facts["promise"] is facts["costs"] is None
    text = report_on(pipeline).to_markdown()
    assert "No privacy guarantee for this pipeline" in text
    assert "## Parts without a guarantee" in text
    assert "to sign" not in text


def test_steps_that_learn_nothing_keep_the_guarantee_and_frozen_ones_are_to_be_signed():
    X, y = rows()
    frozen = FrozenEstimator(StandardScaler().fit(X[:50]))
    inner = make_pipeline(Normalizer(), clone(linear()))
    facts = report_on(make_pipeline(frozen, inner).fit(X, y)).to_dict()
    assert facts["private"] is True
    assert facts["not_covered"] == []
    frozen_is_public = asdict(FROZEN_IS_PUBLIC)
    assert frozen_is_public in facts["assumptions"]
    assert frozen_is_public not in report_on(inner.fit(X, y)).to_dict()["assumptions"]


def test_names_in_nested_pipelines_are_those_of_privacy_leaks():
    X, y = rows()
    inner = make_pipeline(StandardScaler(), clone(linear()))
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, y)
    shown = [one["name"] for one in report_on(pipeline).to_dict()["not_covered"]]
    assert shown == [leak.name for leak in privacy_leaks(pipeline)]


def test_a_curve_that_is_infinite_at_some_orders_has_a_cost():
    curve = RdpCurve([2.0, 3.0, 4.0], [0.1, np.inf, np.inf])
    clf = Stated(curve=curve, epsilon=curve.quiet_epsilon(1e-5))
    json.loads(report_on(clf).to_json())


@pytest.mark.parametrize(
    ("clf", "error", "match"),
    [
        (PATEClassifier(), NotFittedError, "not fitted"),
        (make_pipeline(StandardScaler(), PATEClassifier()), NotFittedError, "fitted"),
        (
            LogisticRegression(),
            ValueError,
            "LogisticRegression has no privacy_spent_; pass",
        ),
        (
            GridSearchCV(PATEClassifier(), {}),
            ValueError,
            "GridSearchCV has no privacy_spent_",
        ),
    ],
)
def test_others_are_refused(clf, error, match):
    with pytest.raises(error, match=match):
        PrivacyReport.from_estimator(clf)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"title": 3}, "title=3 must be a text"),
        ({"title": "  "}, "must be a text"),
        ({"quality": {}}, "must be a dict of names and numbers"),
        ({"quality": [0.8]}, "must be a dict of names and numbers"),
        ({"quality": {"accuracy": np.nan}}, "must be a finite number"),
        ({"quality": {"accuracy": "high"}}, "must be a finite number"),
        ({"quality": {"accuracy": True}}, "must be a finite number"),
        ({"quality": {3: 0.8}}, "a name in quality=3"),
        ({"quality": {"accuracy": 0.8}}, "quality needs evaluated_on"),
        (QUALITY, "quality_is_public=None must be True"),
        (QUALITY | {"quality_is_public": "yes"}, "quality_is_public='yes' must be"),
        ({"evaluated_on": "rows"}, "pass quality"),
        ({"quality_is_public": True}, "pass quality"),
        ({"ledger": "patients.sqlite"}, "must be a PrivacyLedger"),
    ],
)
def test_options_that_cannot_work_are_refused(options, match):
    with pytest.raises(ValueError, match=re.escape(match)):
        report_on(pate(), **options)
