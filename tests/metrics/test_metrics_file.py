"""Files of private metrics: read again, and refused once a value is changed."""

import json
from copy import deepcopy

import numpy as np
import pytest

from sklearn_pate.metrics import PrivateMetrics, private_metrics
from tests.metrics.scores import FirstColumn, scored_rows
from tests.seeding import equal_noise

pytestmark = pytest.mark.slow


def write(values, path):
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize("name", ["measured", "of_three_classes"])
def test_metrics_are_read_as_they_were_written(name, request, tmp_path):
    metrics = request.getfixturevalue(name)[2]
    metrics.save(tmp_path / "metrics.json")
    read = PrivateMetrics.load(tmp_path / "metrics.json")
    assert {**read} == {**metrics}
    assert read.privacy_spent_ == metrics.privacy_spent_
    # Noise alone has metrics that are NaN, which equal nothing.
    assert str(read.by_subgroup) == str(metrics.by_subgroup)
    assert read.to_dict() == metrics.to_dict()


def test_figures_of_a_class_are_below_the_name_of_the_metric(of_three_classes):
    metrics = of_three_classes[2]
    figures = metrics.to_dict()["figures"]
    assert figures["roc_auc"]["1"]["low"] == round(metrics["roc_auc", 1].low, 6)
    assert figures["accuracy"]["value"] == round(metrics["accuracy"].value, 6)


def test_a_group_as_unit_and_missing_subgroups_are_read_again(tmp_path):
    X, y = scored_rows(600)
    subgroups = np.array(["a", None] * 300, dtype=object)
    groups = np.arange(600) // 2
    metrics = private_metrics(
        FirstColumn(),
        X,
        y,
        epsilon=3.0,
        subgroups=subgroups,
        subgroup_values=["a"],
        groups=groups,
    )
    metrics.save(tmp_path / "metrics.json")
    read = PrivateMetrics.load(tmp_path / "metrics.json")
    assert read.n_rows_ is None
    assert read.subgroups_ == ["a", "other or missing"]
    assert read.privacy_spent_ == metrics.privacy_spent_


def test_a_file_is_replaced_only_on_request(measured, tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text("")
    with pytest.raises(FileExistsError, match="exists already"):
        measured[2].save(path)
    measured[2].save(path, overwrite=True)
    assert path.stat().st_size > 1000


def test_seeded_metrics_are_not_written(tmp_path):
    X, y = scored_rows(500)
    with equal_noise():
        metrics = private_metrics(FirstColumn(), X, y, epsilon=5.0, bins=[0.2, 0.5])
    with pytest.raises(ValueError, match="no privacy guarantee, as their noise was"):
        metrics.save(tmp_path / "metrics.json")


FORGED = {
    "another epsilon": lambda one: one.update(epsilon=0.1),
    "another statement": lambda one: one.update(statement="Perfectly private."),
    "less noise": lambda one: one.update(noise_scales=[1.0, 1.0]),
    "no noise": lambda one: one.update(noise_scales=[0.0, 0.0]),
    "infinite noise": lambda one: one.update(noise_scales=[1e400, 1e400]),
    "fewer tables": lambda one: one.update(n_tables=2),
    "no tables": lambda one: one.update(n_tables=0),
    "a smaller delta": lambda one: one.update(delta=1e-9),
    "no delta": lambda one: one.update(delta=0.0),
    "another unit": lambda one: one.update(unit="group"),
    "another relation": lambda one: one.update(relation="add-remove"),
    "no assumptions": lambda one: one.update(assumptions=[]),
    "a fine figure": lambda one: one["figures"]["roc_auc"].update(value=0.99),
    "a narrow interval": lambda one: one["figures"]["accuracy"].update(low=0.82),
    "a figure of a subgroup": lambda one: one["by_subgroup"][0].update(accuracy=1),
    "no subgroup": lambda one: one.update(by_subgroup=[]),
    "an unknown metric": lambda one: one["figures"].update(beauty=1.0),
    "counts that are text": lambda one: one["confusion"][0].__setitem__(0, "1"),
    "counts that are numbers": lambda one: one["confusion"][0].__setitem__(0, 1.5),
    "counts that are huge": lambda one: one["confusion"][0].__setitem__(0, 10**30),
    "other counts": lambda one: one["histograms"][0][0][0].__setitem__(1, 5000),
    "a missing bin": lambda one: one["edges"][0].pop(),
    "edges in disorder": lambda one: one["edges"][0].reverse(),
    "scores above 1": lambda one: one["middles"][0].__setitem__(0, 1.5),
    "equal classes": lambda one: one.update(classes=[1, 1]),
    "one class": lambda one: one.update(classes=[1]),
    "no number of rows": lambda one: one.update(n_rows=None),
    "another version": lambda one: one.update(format_version=4),
    "an unknown field": lambda one: one.update(note="trust me"),
    "a subgroup that hides text": lambda one: one.update(
        subgroups=["\u202eold", "y", "other or missing"]
    ),
    "too many classes": lambda one: one.update(classes=[*range(1000)]),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_changed_file_is_refused(measured, name, tmp_path):
    values = deepcopy(measured[2].to_dict())
    FORGED[name](values)
    with pytest.raises(ValueError, match="is not a file of private metrics: "):
        PrivateMetrics.load(write(values, tmp_path / "metrics.json"))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "1", '{"format": "x"}'])
def test_any_other_file_is_refused(text, tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a file of private metrics: "):
        PrivateMetrics.load(path)


def test_other_random_numbers_of_the_intervals_are_accepted(measured, tmp_path):
    values = measured[2].to_dict()
    for one in values["figures"].values():
        one["low"] += (one["high"] - one["low"]) / 20
    read = PrivateMetrics.load(write(values, tmp_path / "metrics.json"))
    assert {**read} == {**measured[2]}
