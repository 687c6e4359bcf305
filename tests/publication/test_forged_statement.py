"""Files whose statement was forged in one part, or in all of them alike."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from sklearn_pate import PrivacyLedger
from sklearn_pate._cli._report_command import read_released
from sklearn_pate.accounting import DEFAULT_ORDERS, Assumption
from sklearn_pate.accounting._statement import NEIGHBOURS
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from tests.publication.forging import (
    FITS,
    OTHER_FITS,
    card_of,
    forge,
    refused,
    setting,
    vote,
)

PRIVATE = [kind for kind in FITS | OTHER_FITS if not kind.startswith("nothing")]

# Files without changes.


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS | OTHER_FITS)
def test_an_unchanged_file_is_read_with_its_statement(honest, kind):
    path = honest(kind)
    loaded, read = PublishedClassifier.load(path), read_released(path)
    assert loaded.privacy_spent_ == read.privacy_spent_
    assert str(loaded.privacy_spent_) == loaded.card["statement"]
    assert len(loaded.privacy_spent_.curve.orders) == len(DEFAULT_ORDERS)
    is_pure = kind in ("LNMax", "GumbelMax", "PermuteAndFlip")
    assert np.isfinite(loaded.privacy_spent_.curve.pure_epsilon) == is_pure


def test_a_fit_through_a_ledger_is_read_with_its_statement(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.sqlite", epsilon=90, delta=1e-5)
    published = publish(vote(GNMax(sigma=8.0), ledger=ledger))
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == published.privacy_spent_


@pytest.mark.slow
def test_another_process_reads_the_file_and_writes_it_again(honest):
    path = honest("ConfidentGNMax")
    code = (
        "import sys; from sklearn_pate.publication import PublishedClassifier; "
        "PublishedClassifier.load(sys.argv[1]).save(sys.argv[2])"
    )
    again = path.with_name("again.skops")
    subprocess.run([sys.executable, "-c", code, path, again], check=True)
    assert PublishedClassifier.load(again).card == card_of(path)


def test_a_card_with_a_weaker_guarantee_is_read(honest):
    path = honest("GNMax")
    spent = PublishedClassifier.load(path).privacy_spent_
    old, new = f"(epsilon={spent.epsilon:.3f}", "(epsilon=99.000"
    text = card_of(path)["statement"]
    assert text.count(new) == 0
    text = text.replace(text[text.index("(epsilon=") : text.index(", delta")], new)
    forge(path, setting(epsilon=99.0), statement=text)
    assert PublishedClassifier.load(path).privacy_spent_.epsilon == 99.0, old


def test_rounding_of_another_platform_is_no_contradiction(honest):
    path = honest("GNMax")
    epsilon = card_of(path)["epsilon"]
    forge(
        path,
        setting(epsilon=epsilon * (1 - 1e-12)),
        curve=lambda order, value: (order, value * (1 - 1e-12)),
    )
    assert PublishedClassifier.load(path).privacy_spent_.epsilon < epsilon
    forge(path, setting(epsilon=epsilon * (1 - 1e-8)))
    assert "it states epsilon=" in refused(path)


# One part forged: each kind of fit, each part.


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_smaller_epsilon_than_the_cost_is_refused(honest, kind, everywhere):
    path = honest(kind)
    card, wanted = card_of(path), "(epsilon=0.100, delta=1e-05)"
    text = None
    if everywhere:  # the sentence on both cards and in the model file as well
        text = card["statement"]
        start, end = text.index("(epsilon="), text.index(")-diff") + 1
        text = text[:start] + wanted + text[end:]
    forge(path, setting(epsilon=0.1), statement=text)
    assert f"it states epsilon=0.1, and {card['n_queries']} queries" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_a_smaller_curve_than_the_cost_is_refused(honest, kind):
    path = honest(kind)
    forge(path, curve=lambda order, value: (order, value / 2))
    assert "its Renyi curve is" in refused(path)
    path = honest(kind)

    at = DEFAULT_ORDERS[100]
    forge(path, curve=lambda a, value: (a, value * (1 - 1e-6 * (a == at))))
    assert "its Renyi curve is" in refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("place", ["start", "middle", "stated"])
def test_a_smaller_delta_in_one_pair_than_the_cost_is_refused(honest, kind, place):
    path = honest(kind)
    card = card_of(path)
    pairs = [*card["profile"]]
    stated = pairs.index([card["epsilon"], card["delta"]])
    at = {"start": 0, "middle": stated // 2, "stated": stated}[place]
    epsilon, delta = pairs[at]
    pairs[at] = [epsilon, delta * (1 - 1e-6 if at == stated else 0.98)]
    forge(path, setting(profile=pairs))
    message = refused(path)
    assert f"its profile has delta={pairs[at][1]:g} at epsilon={epsilon:g}, " in message
    assert f"to {card['mechanism']} cost" in message


@pytest.mark.parametrize("kind", FITS)
def test_a_pair_that_the_noise_does_not_have_is_refused(honest, kind):
    path = honest(kind)
    card = card_of(path)
    forge(path, setting(profile=[*card["profile"], [600.0, 0.0]]))
    assert "its profile has delta=0 at epsilon=600, and" in refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PRIVATE)
def test_a_profile_above_the_cost_is_read(honest, kind):
    path = honest(kind)
    card = card_of(path)
    higher = [
        [epsilon, min(1.5 * delta, 1.0) if epsilon < card["epsilon"] else delta]
        for epsilon, delta in card["profile"]
    ]
    forge(path, setting(profile=higher))
    spent = PublishedClassifier.load(path).privacy_spent_
    assert spent.to_dict()["profile"] == higher
    assert spent.attack_accuracy() > 0.5 + card["profile"][0][1] / 2


def test_a_profile_above_the_stated_pair_is_refused(honest):
    path = honest("GNMax")
    forge(path, setting(profile=[[0.0, 1.0]]))
    assert "at delta=1e-05, and its profile delta=1 there" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_a_curve_at_other_orders_is_refused(honest, kind):
    path = honest(kind)
    forge(path, curve=lambda order, value: (order * 1.5, value))
    assert "its Renyi curve is at other orders" in refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_another_unit_or_relation_is_refused(honest, kind):
    card = card_of(honest(kind))
    for unit, relation in NEIGHBOURS.keys() - {(card["unit"], card["relation"])}:
        stated = {"unit": unit, "relation": relation}
        forge(path := honest(kind), setting(**stated))
        message = f"not those of unit={unit!r} with relation={relation!r}"
        assert message in refused(path)
        stated["neighbours"] = NEIGHBOURS[unit, relation]
        forge(path := honest(kind), setting(**stated))
        fits = (relation == "add-remove") == (kind == "Private-kNN")
        message = "its statement in words differs" if fits else "it protects unit="
        assert message in refused(path)


@pytest.mark.parametrize(
    ("unit", "relation"),
    [("party", "add-remove"), ("group", "replace-one"), ("row", "add"), ("rows", "")],
)
def test_a_relation_that_no_unit_has_is_refused(honest, unit, relation):
    path = honest("GNMax")
    forge(path, setting(unit=unit, relation=relation))
    message = f"not those of unit={unit!r} with relation={relation!r}"
    assert message in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_other_neighbours_in_words_are_refused(honest, kind):
    path = honest(kind)
    forge(path, setting(neighbours="change all rows at once"))
    assert "its neighbours are 'change all rows at once', which are" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_release_is_refused(honest, kind):
    true = card_of(honest(kind))["release"]
    for release in {"answers", "sum", "model", "search", "a promise"} - {true}:
        forge(path := honest(kind), setting(release=release))
        assert f"it states release={release!r}, which" in refused(path)


@pytest.mark.parametrize("kind", FITS)
def test_another_sentence_of_an_assumption_is_refused(honest, kind):
    path = honest(kind)
    forged = [*card_of(path)["assumptions"]]
    forged[0] = {"code": forged[0]["code"], "sentence": "nothing is assumed"}
    forge(path, setting(assumptions=forged))
    code = forged[0]["code"]
    message = f"its assumption {code!r} is 'nothing is assumed' instead of 'the"
    assert message in refused(path)


def test_an_assumption_under_the_code_of_another_is_refused(honest):
    path = honest("GNMax")
    first, second, *rest = card_of(path)["assumptions"]
    forge(path, setting(assumptions=[first | {"code": second["code"]}, second, *rest]))
    assert f"its assumption {second['code']!r} is" in refused(path)


def test_an_assumption_of_somebody_else_keeps_its_sentence(tmp_path):
    pate = vote(GNMax(sigma=8.0))
    consent = Assumption("clinic-consent", "everybody consented", "Is there a form?")
    spent = pate.privacy_spent_
    pate.privacy_spent_ = replace(spent, assumptions=(*spent.assumptions, consent))
    publish(pate).save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_.assumptions == (
        *spent.assumptions,
        Assumption("clinic-consent", "everybody consented"),
    )
    assert str(loaded.privacy_spent_) == str(pate.privacy_spent_)


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_another_delta_is_refused(honest, kind, delta):
    path = honest(kind)
    forge(path, setting(delta=delta))
    message = refused(path)
    reasons = ["it states epsilon="]
    if delta > 1e-5:
        reasons = ["its profile has delta=1e-05", "its statement in words differs"]
    assert any(reason in message for reason in reasons)


@pytest.mark.parametrize("kind", FITS)
def test_other_classes_are_refused(honest, kind):
    path = honest(kind)
    forge(path, setting(classes=[0, 1]))
    with pytest.raises(ValueError, match="the classes in the model are not those on"):
        PublishedClassifier.load(path)
    with pytest.raises(ValueError, match="it has 2 classes, and the model has 3"):
        read_released(path)


def test_fewer_assumptions_are_refused(honest):
    path = honest("GNMax")
    forge(path, setting(assumptions=card_of(path)["assumptions"][1:]))
    assert "its statement in words" in refused(path)


def test_a_statement_in_the_model_alone_is_compared(honest):
    path = honest("GNMax")
    text = card_of(path)["statement"]
    forge(path, statement="This fit is private.")
    forge(path, setting(statement=text))
    assert "or from the statement in the model file" in refused(path)


FINITE = [[0.0, 1.0], [1.0, 0.1]]


@pytest.mark.parametrize("changes", [{"private": True}, {"epsilon": 1.0}])
def test_seeded_noise_has_no_guarantee(honest, changes):
    path = honest("nothing private")
    forge(path, setting(**changes))
    assert "its noise was seeded, which gives no privacy" in refused(path)


def test_seeded_noise_has_no_curve(honest):
    path = honest("nothing private")
    forge(path, curve=lambda order, value: (order, 0.0))
    assert "its noise was seeded" in refused(path)


def test_seeded_noise_has_no_profile(honest):
    path = honest("nothing private")
    assert card_of(path)["profile"] == [[0.0, 1.0]]
    forge(path, setting(profile=FINITE))
    assert "it states private=False, and its profile a delta below 1" in refused(path)


def test_a_guarantee_is_not_private_and_void_at_once(honest):
    path = honest("GNMax")
    forge(path, setting(private=False))
    assert "and private=False" in refused(path)
