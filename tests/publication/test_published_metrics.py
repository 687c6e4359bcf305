"""Models that are published with private metrics, and forged ones."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.metrics import private_metrics
from sklearn_pate.publication import PublishedClassifier, publish
from tests.metrics.scores import FirstColumn, scored_rows
from tests.private import main, read_released
from tests.publication.forging import (
    assert_every_value_is_compared,
    card_of,
    forge,
    refused,
)
from tests.publication.test_card_schema import SCHEMA, violations
from tests.seeding import equal_noise

pytestmark = pytest.mark.slow

X, Y = scored_rows(3500)
SUBGROUPS = np.where(np.arange(2500) % 2, "young", "old")


def measure(model, **parameters):
    """Measure a model on the rows that it was not fitted on."""
    by_age = {"subgroups": SUBGROUPS, "subgroup_values": ["old", "young"]}
    options = {"epsilon": 2.0} | by_age | parameters
    return private_metrics(model, X[1000:], Y[1000:], **options)


def measure_few(model, **parameters):
    """Measure on few rows, with little noise, as each row is scored alone."""
    options = {"epsilon": 20.0} | parameters
    return private_metrics(model, X[1000:1400], Y[1000:1400], **options)


@pytest.fixture(scope="module")
def fitted():
    model = DPLogisticRegression(feature_bounds=(0, 1), classes=[0, 1])
    return model.fit(X[:1000], Y[:1000])


@pytest.fixture(scope="module")
def published(fitted):
    return fitted.publish(metrics=measure(fitted))


@pytest.fixture
def saved(published, tmp_path):
    path = tmp_path / "model.skops"
    published.save(path)
    return path


@pytest.mark.thorough
def test_metrics_come_back_with_the_model_and_their_own_statement(published, saved):
    for read in (PublishedClassifier.load, read_released):
        loaded = read(saved)
        assert {**loaded.metrics_} == {**published.metrics_}
        assert loaded.metrics_.privacy_spent_ == published.metrics_.privacy_spent_
        assert loaded.privacy_spent_ == published.privacy_spent_
        assert loaded.model_privacy_spent_ == published.model_privacy_spent_
        assert loaded.metrics_.subgroups_ == ["old", "young", "other or missing"]


@pytest.mark.thorough
def test_the_card_has_figures_only_beside_their_statement(published, saved):
    metrics = card_of(saved)["metrics"]
    assert "This release of metrics is (epsilon=2.000" in metrics["statement"]
    value = published.metrics_["roc_auc"].value
    assert metrics["figures"]["roc_auc"]["value"] == pytest.approx(value, abs=1e-6)
    assert violations(published.card, SCHEMA) == ["card: required"]  # sha256


def test_a_model_without_metrics_has_none(fitted):
    plain = publish(fitted)
    assert not hasattr(plain, "metrics_")
    assert plain.card["metrics"] is None


def test_the_card_states_the_cost_of_the_model_with_its_metrics(published, fitted):
    card, whole = published.card, published.privacy_spent_
    assert whole.release == "measured"
    assert card["statement"] == whole.in_one_line()
    assert "This fit with its metrics is (epsilon=" in card["statement"]
    assert card["epsilon"] == whole.epsilon > fitted.privacy_spent_.epsilon == 1
    assert (card["delta"], card["model_delta"]) == (1e-5, 0.0)
    assert fitted.publish().card["statement"] == fitted.privacy_spent_.in_one_line()
    assert published.model_privacy_spent_ == fitted.privacy_spent_


def test_a_corrected_model_of_a_card_counts_its_metrics_once(published, fitted):
    whole = published.privacy_spent_
    for model in (published, fitted, fitted.publish()):
        spent = published.metrics_.recalibrated(model).privacy_spent_
        assert spent == whole
    others = measure_few(fitted)
    spent = others.recalibrated(published).privacy_spent_
    of_one = others.recalibrated(fitted).privacy_spent_
    assert spent.epsilon > of_one.epsilon > whole.epsilon


@pytest.mark.thorough
def test_every_value_on_a_card_with_metrics_is_compared(published):
    assert_every_value_is_compared(published.card)


FORGED = {
    "a fine figure": lambda one: one["figures"]["roc_auc"].update(value=0.99),
    "no statement": lambda one: one.pop("statement"),
    "a smaller epsilon": lambda one: one.update(epsilon=0.1),
    "less noise": lambda one: one.update(noise_scales=[1.0, 1.0]),
    "other classes": lambda one: one.update(classes=[1, 2]),
    "other counts": lambda one: one["confusion"][0].__setitem__(0, 10**6),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_metrics_are_refused(saved, name):
    def change(card):
        card = deepcopy(card)
        FORGED[name](card["metrics"])
        return card

    forge(saved, change)
    assert "metrics" in refused(saved)


OTHER_MODELS = {
    "fitted again": lambda fitted: clone(fitted).fit(X[:1000], Y[:1000]),
    "fitted on no signal": lambda fitted: clone(fitted).fit(X[:1000], Y[999::-1]),
    "of another package": lambda fitted: LogisticRegression().fit(X[:1000], Y[:1000]),
    "of one column": lambda fitted: FirstColumn(),
    "behind a step": lambda fitted: make_pipeline(FunctionTransformer(), fitted),
    "recalibrated": lambda fitted: measure_few(fitted).recalibrated(fitted),
}


@pytest.mark.parametrize("kind", OTHER_MODELS)
def test_metrics_of_another_model_are_refused(fitted, kind, saved):
    other = OTHER_MODELS[kind](fitted)
    of_other = measure_few(other)
    for publish_or_report in (
        lambda: fitted.publish(metrics=of_other),
        lambda: PrivacyReport.from_estimator(fitted, metrics=of_other),
        lambda: PrivacyReport.from_estimator(read_released(saved), metrics=of_other),
    ):
        with pytest.raises(ValueError, match="metrics are of another model; pass"):
            publish_or_report()
    with pytest.raises(ValueError, match="is not the model of these metrics"):
        of_other.recalibrated(fitted)
    forge(saved, lambda card: card | {"metrics": of_other.to_dict()})
    assert "metrics are of another model" in refused(saved)


def test_what_are_no_metrics_is_refused(fitted):
    with pytest.raises(ValueError, match="must be PrivateMetrics; measure the model"):
        fitted.publish(metrics={"accuracy": 0.8})


def test_metrics_that_protect_another_unit_are_refused(fitted):
    of_groups = measure_few(fitted, groups=np.arange(400))
    with pytest.raises(ValueError, match=r"metrics protect unit='group' .* unit='row'"):
        fitted.publish(metrics=of_groups)


def test_metrics_without_a_guarantee_are_refused(fitted):
    with equal_noise():
        seeded = measure_few(fitted)
    with pytest.raises(ValueError, match="metrics have no privacy guarantee, as"):
        fitted.publish(metrics=seeded)


def test_the_command_add_counts_the_metrics_on_a_card(saved, capsys, fitted, published):
    other = saved.with_name("other.skops")
    fitted.publish().save(other)
    cards = [str(path.with_suffix(".json")) for path in (saved, other)]
    assert main(["add", *cards, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [Path(one["card"]).name for one in facts["cards"]] == [
        "model.json, with metrics",
        "other.json",
    ]
    assert facts["cards"][0]["epsilon"] == published.privacy_spent_.epsilon
    assert 2 < facts["epsilon"] <= 4
    assert main(["add", *cards]) == 0
    assert "2 models, with their metrics, are" in capsys.readouterr().out
