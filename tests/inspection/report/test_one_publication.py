"""A report on a model and its metrics: all of its numbers, computed by hand.

All noise is Gaussian, so that a release is as hard to attack as it is to tell N(0, 1)
from N(mu, 1), and squares of mu of several releases add up.
"""

import re
from functools import cache
from math import ceil, exp, hypot, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import make_classification

from sklearn_pate import PublicData
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPNewtonClassifier
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import fit_and_measure
from sklearn_pate.publication import Deployment, PublishedClassifier
from tests.private import read_released

pytestmark = pytest.mark.slow

DELTA, OF_MODEL, OF_METRICS = 1e-5, 1.0, 0.5
BANDS = ["young", "old", "<b>oldest</b>"]
X, Y = make_classification(5400, 6, random_state=0)
PRIVATE, PUBLIC = slice(0, 4500), {"X_public": PublicData(X[4500:])}


def delta_of(epsilon, mu):
    upper, lower = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return norm.cdf(upper) - exp(epsilon) * norm.cdf(lower)


def epsilon_of(mu, delta=DELTA):
    return brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0, 50)


def mu_of(epsilon):
    return brentq(lambda mu: delta_of(epsilon, mu) - DELTA, 0.01, 5)


def guesses_of(mu):
    return ceil(1000 * norm.cdf(mu / 2))


@cache
def published(how):
    """Publish a model with metrics on other rows, and its mu by hand."""
    clf = DPNewtonClassifier(epsilon=OF_MODEL, classes=[0, 1], random_state=0)
    options = {"subgroup_values": BANDS, "random_state": 0}
    bands = np.array(BANDS)[np.arange(4500) % 3]
    if how == "one call":
        model, metrics, spent = fit_and_measure(
            clf, X[PRIVATE], Y[PRIVATE], subgroups=bands, **options, **PUBLIC
        )
        mu = mu_of(OF_MODEL)
    else:
        model = clf.fit(X[:1500], Y[:1500], **PUBLIC)
        rows = slice(1500, 4500)
        metrics = private_metrics(
            model,
            X[rows],
            Y[rows],
            epsilon=OF_METRICS,
            subgroups=bands[rows],
            **options,
        )
        mu, spent = hypot(mu_of(OF_MODEL), mu_of(OF_METRICS)), None
    described = Deployment(name="Beds", unit_name="patient")
    return model.publish(metrics=metrics, deployment=described), spent, mu


HOW = pytest.mark.parametrize("how", ["two calls", "one call"])


@HOW
@pytest.mark.parametrize("read", [PublishedClassifier.load, read_released, None])
def test_every_number_is_of_the_model_with_its_metrics(how, read, tmp_path):
    model, spent, mu = published(how)
    if read is not None:
        model.save(tmp_path / "model.skops")
        model = read(tmp_path / "model.skops")
    if spent is not None:
        assert model.privacy_spent_ == spent
    facts = PrivacyReport.from_estimator(model).to_dict()
    assert facts["mu"] == pytest.approx(mu, rel=1e-3)
    assert facts["facts"]["rho"] == pytest.approx(mu**2 / 2, rel=2e-3)
    for one in (facts, model.card):
        assert one["epsilon"] == pytest.approx(epsilon_of(mu), rel=1e-3)
        assert f"epsilon={facts['epsilon']:.3f}"[:-1] in one["statement"]
        assert f"at most {guesses_of(mu)} times" in one["statement"]
    for epsilon, delta in model.privacy_spent_.to_dict()["profile"]:
        if delta > 1e-12:
            assert delta == pytest.approx(delta_of(epsilon, mu), rel=0.05)
    promise, costs = facts["promise"], facts["costs"]
    assert promise["guesses"]["right_at_most"] == guesses_of(mu)
    for one in promise["detections"]:
        false_alarms = one["false_alarms"] / 1000
        most = 1000 * norm.cdf(norm.ppf(false_alarms) + mu)
        assert most <= one["detected_at_most"] <= most + 2
    for one in promise["several"]:
        of_units = one["units"] * mu
        assert one["epsilon"] == pytest.approx(one["units"] * epsilon_of(mu), rel=2e-3)
        assert delta_of(one["epsilon"], of_units) <= one["delta"] * (1 + 1e-9)
        most = 1000 * norm.cdf(of_units / 2)
        assert most <= one["guesses"]["right_at_most"] <= most + 4
    for one in costs["pairs"]:
        assert one["delta"] == pytest.approx(delta_of(one["epsilon"], mu), rel=0.1)
    of_two = sqrt(2) * mu
    assert costs["two"]["epsilon"] == pytest.approx(epsilon_of(of_two), rel=2e-3)
    assert costs["two"]["guesses"]["right_at_most"] == guesses_of(of_two)


@HOW
def test_an_epsilon_of_a_part_is_in_a_sentence_about_this_part(how):
    model, _, mu = published(how)
    report = PrivacyReport.from_estimator(model)
    facts = report.to_dict()
    whole = f"{ceil(1000 * facts['epsilon'] - 1e-6) / 1000:.3f}"
    two = f"{facts['costs']['two']['epsilon']:.3f}"
    text = report.to_markdown().replace("\\", "")
    sentences = re.split(r"(?<=\.)\s", text)
    stated = [one for one in sentences if "(epsilon=" in one]
    of_parts = [one for one in stated if f"(epsilon={whole}, " not in one]
    assert of_parts or how == "one call"
    assert all("alone" in one for one in of_parts)
    assert f"This publication is (epsilon={whole}, delta=1e-05)-differ" in text
    assert f"Two publications like this one have epsilon={two} at" in text
    assert f"and at most {guesses_of(sqrt(2) * mu)} of 1000 guesses" in text
    assert f"| {guesses_of(mu)} | This publication, at most |" in text
    assert f"With this model and its metrics, at most {guesses_of(mu)} times" in text
    assert "This page covers this fit with its metrics alone, and no search" in text
    how_they_add_up = {
        "two calls": "The costs of model and metrics add up: together they are",
        "one call": "fitted on other rows than those measured, so that the larger",
    }
    assert how_they_add_up[how] in text
    details = report.to_registry()["deployment"]["privacy_loss"]
    assert details["privacy_parameters"]["epsilon"] == float(whole)
    assert "The model alone has epsilon=1.000" in details["privacy_parameters_details"]


def test_the_only_release_of_a_fit_is_the_first_with_metrics():
    model, *_ = published("two calls")
    alone = DPNewtonClassifier(classes=[0, 1], random_state=0)
    alone.fit(X[:1500], Y[:1500], **PUBLIC)
    with_metrics, without = (
        PrivacyReport.from_estimator(one).to_markdown() for one in (model, alone)
    )
    assert "the only release" in without
    assert "Metrics: computed from the noisy counts: the last release" in with_metrics
    assert "the only release" not in with_metrics
