"""Published models of numbers, times and several outcomes."""

import hashlib
import json
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_pate import PublishedClassifier
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.metrics import private_metrics
from sklearn_pate.outcomes import (
    PublishedMultiOutput,
    PublishedRegressor,
    PublishedSurvival,
)
from sklearn_pate.publication import Deployment, _model_file

LOADERS = {
    "number": PublishedRegressor,
    "time": PublishedSurvival,
    "labels": PublishedMultiOutput,
}


@pytest.fixture(scope="module", params=LOADERS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def every_saved(fits, tmp_path_factory):
    """By kind: a model, its published form, the path of its file, and fresh rows."""
    every = {}
    for kind, (model, X, y) in fits.items():
        published = model.publish(deployment=Deployment(name="Stays"))
        path = tmp_path_factory.mktemp(kind) / "model.skops"
        assert published.save(path) == []
        every[kind] = model, published, path, X, y
    return every


@pytest.fixture(scope="module")
def saved(kind, every_saved):
    return every_saved[kind]


@pytest.mark.slow
def test_a_saved_model_predicts_as_the_private_one(saved, kind):
    model, published, path, X, y = saved
    loaded = LOADERS[kind].load(path)
    for one in (published, loaded, pickle.loads(pickle.dumps(published))):
        assert np.array_equal(one.predict(X), model.predict(X))
        assert one.score(X, y) == model.score(X, y)
        assert one.privacy_spent_.in_one_line() == model.privacy_spent_.in_one_line()
        assert one.n_features_in_ == 3
        assert clone(one) is one
        with pytest.raises(TypeError, match="it has no private rows"):
            one.fit(X, y)
    assert loaded.card == published.card


@pytest.mark.slow
def test_what_would_not_be_read_again_is_not_saved(saved, monkeypatch):
    _, published, path, _, _ = saved
    # Of several models, each is below this limit, and their archive is not.
    monkeypatch.setattr(_model_file, "LARGEST_MODEL", path.stat().st_size - 1)
    with pytest.raises(ValueError, match="publish a smaller student"):
        published.save(path.with_name("other.skops"))
    assert not path.with_name("other.skops").exists()


@pytest.mark.thorough
def test_another_process_reads_them(every_saved):
    """With nothing but the files, without the training code."""
    code = "import numpy as np; import sklearn_pate.outcomes as P\n"
    for kind, (_, _, path, X, _) in every_saved.items():
        table = str(path.with_name("rows.npy"))
        np.save(table, X)
        code += (
            f"m = P.{LOADERS[kind].__name__}.load({str(path)!r})\n"
            f"print(m.predict(np.load({table!r})).tolist())\n"
        )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    expected = [model.predict(X).tolist() for model, *_, X, _ in every_saved.values()]
    assert [json.loads(line) for line in printed.splitlines()] == expected


def test_another_loader_names_the_right_one(saved, kind):
    *_, path, _, _ = saved
    right = LOADERS[kind].__name__
    for other in {*LOADERS.values(), PublishedClassifier} - {LOADERS[kind]}:
        message = "not a sklearn_pate privacy card" if kind == "labels" else right
        if other is PublishedMultiOutput:
            message = "is no card of several outcomes"
        with pytest.raises(ValueError, match=message):
            other.load(path)


def copied(path, folder):
    """Copy a model and its card."""
    for suffix in (".skops", ".json"):
        old = path.with_suffix(suffix)
        (folder / old.name).write_bytes(old.read_bytes())
    return folder / path.name


def test_forged_edges_are_found(saved, kind, tmp_path):
    *_, path, _, _ = saved
    if kind == "labels":
        pytest.skip("it has no edges")
    copy = copied(path, tmp_path)
    card = json.loads(copy.with_suffix(".json").read_text())
    card["outcome"]["edges"][-1] += 1
    copy.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match="was edited"):
        LOADERS[kind].load(copy)
    # The copy inside forged, too: the fingerprint of the model covers the edges.
    forge_inside(copy, card)
    with pytest.raises(ValueError, match="holds another model"):
        LOADERS[kind].load(copy)
    card["outcome"]["edges"] = card["outcome"]["edges"][:-1]
    forge_inside(copy, card)
    with pytest.raises(ValueError, match="its outcome does not fit its classes"):
        LOADERS[kind].load(copy)


def forge_inside(path, card):
    """Replace the card in a model file, with the right hashes."""
    inner = {name: one for name, one in card.items() if name != "sha256"}
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["privacy_card.json"] = json.dumps(inner, sort_keys=True).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    card["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(card))


@pytest.mark.slow
def test_forged_totals_of_several_outcomes_are_found(of_labels, tmp_path):
    model, _, _ = of_labels
    path = tmp_path / "model.skops"
    model.publish().save(path)
    card_path = path.with_suffix(".json")
    text = card_path.read_text()
    card = json.loads(text)
    card_path.write_text(json.dumps(card | {"epsilon": card["epsilon"] / 2}))
    with pytest.raises(ValueError, match="is not the sum of those of"):
        PublishedMultiOutput.load(path)
    for change in (
        {"cards": card["cards"][:1]},
        {"cards": []},
        {"outcomes": ["a"]},
        {"outcomes": card["outcomes"][::-1]},
        {"outcomes": "01"},
        {"outcomes": ["0", "0"]},
        {"outcomes": ["", "0"]},
        {"format": "x"},
    ):
        card_path.write_text(json.dumps(card | change))
        with pytest.raises(ValueError, match="is no card of several outcomes"):
            PublishedMultiOutput.load(path)
    for change in ({"epsilon": "x"}, {"extra": "approved"}, {"statement": "none"}):
        card_path.write_text(json.dumps(card | change))
        with pytest.raises(ValueError, match="is not the sum of those of"):
            PublishedMultiOutput.load(path)
    card_path.write_text(text)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="its sha256 is not that of"):
        PublishedMultiOutput.load(path)


@pytest.mark.parametrize("kind", ["number", "time"])
def test_report_and_card_say_what_is_predicted(kind, fits):
    model, _, _ = fits[kind]
    described = Deployment(prediction="days in hospital")
    published = model.publish(deployment=described)
    text = {
        "number": "days in hospital (a number from 0 to 10, in 5 bins)",
        "time": "days in hospital (the time until an event, from 0 to 10, in 3",
    }[kind]
    for one in (model, published):
        report = PrivacyReport.from_estimator(one, deployment=described)
        assert text in report.to_markdown().replace("\\", "")
        assert report.to_dict()["epsilon"] == model.privacy_spent_.epsilon
    assert published.card["outcome"]["kind"] == kind


def test_a_report_of_several_outcomes_is_one_of_each(of_labels):
    model, _, _ = of_labels
    with pytest.raises(ValueError, match="one of its estimators_"):
        PrivacyReport.from_estimator(model.publish())
    report = PrivacyReport.from_estimator(model.publish().estimators_[0])
    assert report.to_dict()["epsilon"] < model.privacy_spent_.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "time"])
def test_metrics_are_published_with_the_model(kind, fits, tmp_path):
    model, X, y = fits[kind]
    metrics = private_metrics(model, X, y, epsilon=2.0)
    published = model.publish(metrics=metrics)
    assert published.privacy_spent_.epsilon > model.privacy_spent_.epsilon
    assert published.model_privacy_spent_.epsilon == model.privacy_spent_.epsilon
    published.save(tmp_path / "model.skops")
    loaded = LOADERS[kind].load(tmp_path / "model.skops")
    name = {"number": "r2", "time": "concordance"}[kind]
    assert loaded.metrics_[name] == metrics[name]
    report = PrivacyReport.from_estimator(loaded).to_markdown()
    meaning = {"number": "variance that the predictions", "time": "pairs whose events"}
    assert meaning[kind] in report
    of_classes = private_metrics(model.classifier_, X, model._read(y)[0], epsilon=2.0)
    with pytest.raises(ValueError, match="must be OutcomeMetrics"):
        model.publish(metrics=of_classes)
    other, _, _ = fits["time" if kind == "number" else "number"]
    with pytest.raises(ValueError, match="metrics are of another model"):
        other.publish(metrics=metrics)
