"""Private metrics in a report: figures with intervals, and their own statement."""

import functools
import json

import numpy as np
import pytest

from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.metrics import private_metrics
from sklearn_pate.publication import Deployment
from tests.inspection.report.registry_schema import violations
from tests.inspection.report.reported import markdown_tables
from tests.metrics.scores import scored_rows
from tests.private import of_thousand, write_epsilon
from tests.seeding import equal_noise

pytestmark = pytest.mark.slow

X, Y = scored_rows(2500)
BANDS = np.array(["under 40", "40 to 60", "over 60", "<b>50</b>", "unknown"])


@functools.cache
def fitted():
    model = DPLogisticRegression(feature_bounds=(0, 1), classes=[0, 1])
    return model.fit(X[:500], Y[:500])


@functools.cache
def measured(n_bands=2, **parameters):
    options = {"epsilon": 2.0} | parameters
    if n_bands:
        options["subgroups"] = BANDS[np.arange(2000) % n_bands]
        options["subgroup_values"] = BANDS[:n_bands]
    return private_metrics(fitted(), X[500:], Y[500:], **options)


def report(metrics, **options):
    return PrivacyReport.from_estimator(fitted(), metrics=metrics, **options)


@pytest.mark.thorough
def test_each_metric_is_shown_with_its_interval_also_by_subgroup():
    metrics = measured()
    text = report(metrics).to_markdown()
    assert "Metrics of private rows; a positive row has the label 1:" in text
    assert "| Metric | Value | 95 % interval | Meaning |" in text
    assert "| Metric | under 40 | 40 to 60 |" in text
    assert "hides all metrics of these subgroups: other or missing." in text
    for name, heading in (("roc_auc", "AUC"), ("brier_score", "Brier score")):
        value, interval = repr(metrics[name]).split(" ", 1)
        interval = interval.strip("()")
        assert f"| {heading} | {value} | {interval} | " in text
        cells = (metrics.by_subgroup[one][name] for one in BANDS[:2])
        assert f"| {heading} | {' | '.join(map(repr, cells))} |" in text


@pytest.mark.thorough
def test_every_metric_has_a_meaning():
    _, *rows = next(
        table
        for table in markdown_tables(report(measured()).to_markdown())
        if table[0][-1] == "Meaning"
    )
    assert len(rows) == len(measured())
    assert all(row[-1] for row in rows)


@pytest.mark.thorough
def test_more_subgroups_have_a_further_table():
    text = report(measured(5)).to_html()
    assert text.count("<caption>Metrics by subgroup, with 95 % intervals") == 2
    assert "&lt;b&gt;50&lt;/b&gt;" in text
    assert "<b>50</b>" not in text


def test_metrics_the_noise_hides_are_said_to_be_hidden():
    X_few, y_few = scored_rows(60)
    with pytest.warns(Warning, match="the interval of the AUC"):
        metrics = private_metrics(fitted(), X_few, y_few, epsilon=0.1, delta=1e-5)
    text = report(metrics).to_markdown()
    assert "| AUC | hidden by the noise |" in text


def test_parts_are_named_as_parts_of_the_whole():
    metrics, of_model = measured(), fitted().privacy_spent_
    shown = report(metrics)
    total = of_model + metrics.privacy_spent_
    text = shown.to_markdown().replace("\\", "")
    for part in (of_model, metrics.privacy_spent_):
        assert part.in_one_line() in text
    assert f"together they are (epsilon={write_epsilon(total.epsilon)}" in text
    facts = shown.to_dict()
    assert facts["epsilon"] == total.epsilon
    assert facts["model_alone"]["epsilon"] == 1
    assert facts["metrics"]["epsilon"] == metrics.privacy_spent_.epsilon
    assert not shown.internal


def test_an_attacker_has_the_metrics_too():
    total = fitted().privacy_spent_ + measured().privacy_spent_
    with_metrics, without = (
        PrivacyReport.from_estimator(fitted(), metrics=one).to_dict()["promise"]
        for one in (measured(), None)
    )
    guesses = with_metrics["guesses"]["right_at_most"]
    assert guesses == of_thousand(total.attack_accuracy())
    assert guesses > without["guesses"]["right_at_most"]


def test_the_assumptions_of_the_metrics_are_signed_too():
    shown = report(measured())
    sentences = [one["sentence"] for one in shown.to_dict()["assumptions"]]
    for one in measured().privacy_spent_.assumptions:
        assert sentences.count(one.sentence) == 1
    assert "except through releases whose cost is stated" in shown.to_markdown()


@pytest.mark.thorough
def test_subgroups_fill_in_the_line_of_quality_by_subpopulation():
    assert "quality" not in report(measured()).to_dict()["to_fill_in"]
    assert "quality" in report(measured(0)).to_dict()["to_fill_in"]
    assert "quality" in PrivacyReport.from_estimator(fitted()).to_dict()["to_fill_in"]


def test_metrics_of_the_card_are_shown_and_no_others():
    published = fitted().publish(metrics=measured())
    shown = PrivacyReport.from_estimator(published)
    assert shown.to_dict()["metrics"]["figures"]["roc_auc"]
    same = PrivacyReport.from_estimator(published, metrics=measured())
    assert same.to_dict()["metrics"] == shown.to_dict()["metrics"]
    with pytest.raises(ValueError, match="metrics differ from the metrics on the card"):
        PrivacyReport.from_estimator(published, metrics=measured(0))


def test_figures_on_public_rows_and_metrics_stand_side_by_side():
    text = report(
        measured(),
        quality={"accuracy of a survey": 0.8},
        evaluated_on="a public survey.",
        quality_is_public=True,
    ).to_markdown()
    assert "| accuracy of a survey | 0.8 |" in text
    assert "| Accuracy | 0." in text


def test_the_record_for_a_registry_has_the_metrics_and_both_costs():
    shown = report(measured(), deployment=Deployment(name="Beds"))
    record = shown.to_registry()
    deployment = record["deployment"]
    assert (
        "On private rows, with 95 % intervals: AUC 0."
        in (deployment["implementation"]["utility"])
    )
    details = deployment["privacy_loss"]["privacy_parameters_details"]
    assert (
        "The model alone has epsilon=1.000 and delta=0, and the metrics alone"
        in details
    )
    plain = report(None, deployment=Deployment(name="Beds")).to_registry()
    assert violations(record) == violations(plain)


def test_metrics_of_another_unit_or_without_a_guarantee_are_refused():
    groups = private_metrics(
        fitted(), X[500:900], Y[500:900], epsilon=20.0, groups=np.arange(400)
    )
    with pytest.raises(ValueError, match="Such costs do not add up"):
        report(groups)
    with equal_noise():
        seeded = private_metrics(fitted(), X[500:900], Y[500:900], epsilon=20.0)
    with pytest.raises(ValueError, match="metrics have no privacy guarantee"):
        report(seeded)


def test_a_recalibrated_model_is_reported_on_by_its_parts():
    recalibrated = measured().recalibrated(fitted())
    with pytest.raises(ValueError, match="pass its model as clf and its metrics"):
        PrivacyReport.from_estimator(recalibrated)


def test_a_model_without_a_guarantee_has_metrics_and_no_total():
    with equal_noise():
        model = DPLogisticRegression(feature_bounds=(0, 1), classes=[0, 1])
        model.fit(X[:500], Y[:500])
    metrics = private_metrics(model, X[500:900], Y[500:900], epsilon=20.0)
    facts = PrivacyReport.from_estimator(model, metrics=metrics).to_dict()
    assert facts["epsilon"] is None
    json.dumps(facts, allow_nan=False)
