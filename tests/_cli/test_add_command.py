"""Command ``add``: the total cost of models by their cards."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting import compose_profiles
from sklearn_pate.exceptions import PrivacyLeakWarning
from sklearn_pate.learners import DPLogisticRegression
from tests.private import main
from tests.seeding import equal_noise


def fitted(blobs, **parameters):
    X, y, X_public, _ = blobs
    options = {"n_teachers": 20, "n_queries": 40, "mechanism": "gnmax", "epsilon": 4}
    pate = PATEClassifier(GaussianNB(), GaussianNB(), **options | parameters)
    by_group = {"groups": np.arange(len(y))} if "privacy_unit" in parameters else {}
    return pate.fit(X, y, X_public=PublicData(X_public), **by_group)


@pytest.fixture(scope="module")
def published(blobs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cards")
    fits = {
        "first": fitted(blobs),
        "second": fitted(blobs, epsilon=2),
        "gumbel": fitted(blobs, mechanism="gumbel", epsilon=1),
        "groups": fitted(blobs, privacy_unit="group"),
    }
    for name, fit in fits.items():
        fit.publish().save(folder / f"{name}.skops")
    return folder, {name: fit.privacy_spent_ for name, fit in fits.items()}


@pytest.fixture
def cards(published, monkeypatch):
    folder, statements = published
    monkeypatch.chdir(folder)
    return statements


def total(capsys, *arguments):
    assert main(["add", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["add", *arguments])
    assert stop.value.code == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.thorough
def test_the_total_is_the_smaller_of_two_known_costs(cards, capsys):
    facts = total(capsys, "first.json", "second.json", "gumbel.json")
    spent = [cards[name] for name in ("first", "second", "gumbel")]
    curve = spent[0].curve + spent[1].curve + spent[2].curve
    profile = compose_profiles(one.profile for one in spent)
    assert facts["epsilon"] == pytest.approx(
        min(curve.to_epsilon(1e-5), profile.epsilon_at(1e-5)), rel=1e-9
    )
    assert facts["epsilon"] < sum(one.epsilon for one in spent)
    assert [card["card"] for card in facts["cards"]] == [
        "first.json",
        "second.json",
        "gumbel.json",
    ]
    assert (facts["unit"], facts["relation"]) == ("row", "replace-one")


@pytest.mark.thorough
def test_the_total_in_words(cards, capsys):
    assert main(["add", "first.json", "second.json"]) == 0
    text = capsys.readouterr().out
    assert "first.json: epsilon=4.000, delta=1e-05" in text
    assert "Together, 2 models are (epsilon=" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_smaller_delta_needs_a_larger_epsilon(cards, capsys):
    usual = total(capsys, "first.json", "second.json")
    strict = total(capsys, "first.json", "second.json", "--delta", "1e-7")
    assert (usual["delta"], strict["delta"]) == (1e-5, 1e-7)
    assert strict["epsilon"] > usual["epsilon"]


def test_pure_costs_add_up_without_a_delta(tmp_path, monkeypatch, capsys, blobs):
    X, y, _, _ = blobs
    monkeypatch.chdir(tmp_path)
    for i, epsilon in enumerate((0.5, 0.25)):
        learner = DPLogisticRegression(
            epsilon=epsilon, feature_bounds=(-20, 20), classes=[0, 1, 2]
        )
        learner.fit(X, y).publish().save(f"{i}.skops")
    facts = total(capsys, "0.json", "1.json")
    assert facts["delta"] == 0
    assert facts["epsilon"] == pytest.approx(0.75, rel=1e-6)
    assert total(capsys, "0.json", "1.json", "--delta", "1e-13")["epsilon"] <= 0.75


def test_one_model_is_not_counted_twice(cards, capsys):
    message = refused(capsys, "first.json", "first.json")
    assert "first.json is the card of the same model as first.json" in message


def test_other_units_are_refused(cards, capsys):
    message = refused(capsys, "first.json", "groups.json")
    assert "unit='group' with relation='add-remove-or-change'" in message
    assert "Such costs do not add up" in message


def test_one_card_is_no_total(cards, capsys):
    assert "needs at least two cards" in refused(capsys, "first.json")


@pytest.mark.parametrize("delta", ["0.0", "2", "x"])
def test_a_delta_out_of_range_is_refused(cards, capsys, delta):
    message = refused(capsys, "first.json", "second.json", "--delta", delta)
    assert "delta" in message


def test_a_forged_card_is_refused(cards, capsys, tmp_path):
    card = json.loads(Path("first.json").read_text())
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(card | {"epsilon": 0.9 * card["epsilon"]}))
    message = refused(capsys, "second.json", str(forged))
    assert "is inconsistent: its epsilon is" in message
    forged.write_text(json.dumps(card | {"epsilon": "a"}))
    message = refused(capsys, "second.json", str(forged))
    assert "its epsilon has the wrong type" in message
    assert "not a sklearn_pate privacy card" in refused(
        capsys, "second.json", _other(tmp_path)
    )


def _other(folder):
    path = folder / "other.json"
    path.write_text("{}")
    return str(path)


def test_seeded_noise_has_no_total(blobs, tmp_path, monkeypatch, capsys, published):
    monkeypatch.chdir(published[0])
    with equal_noise():
        fit = fitted(blobs)
    with pytest.warns(PrivacyLeakWarning):
        model = fit.publish()
    model.save(tmp_path / "seeded.skops")
    message = refused(capsys, "first.json", str(tmp_path / "seeded.json"))
    assert "no privacy guarantee, as its noise was seeded" in message
