"""Files whose statement was forged in one field, or in all of them alike."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from sklearn_pate import PrivacyLedger
from sklearn_pate.accounting import DEFAULT_ORDERS, Assumption
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import PublishedClassifier, publish
from tests._aggregation.synthetic_fits import FITS as SYNTHETIC_FITS
from tests._aggregation.synthetic_fits import fit as fit_on_synthetic
from tests.private import _FIELDS, NEIGHBOURS, read_released
from tests.publication.forging import (
    FITS,
    FREE,
    N_PUBLIC,
    OF_STUDENT,
    OTHER_FITS,
    assert_every_value_is_compared,
    card_of,
    forge,
    mutated,
    number,
    refused,
    setting,
    vote,
)

# Files without changes.


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS | OTHER_FITS)
def test_an_unchanged_file_is_read_with_its_statement(honest, kind):
    path = honest(kind)
    loaded, read = PublishedClassifier.load(path), read_released(path)
    assert loaded.privacy_spent_ == read.privacy_spent_
    assert loaded.privacy_spent_.in_one_line() == loaded.card["statement"]
    assert len(loaded.privacy_spent_.curve.orders) == len(DEFAULT_ORDERS)
    is_pure = kind in ("LNMax", "GumbelMax", "PermuteAndFlip")
    assert np.isfinite(loaded.privacy_spent_.curve.pure_epsilon) == is_pure


def test_a_fit_through_a_ledger_is_read_with_its_statement(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.sqlite", epsilon=90, delta=1e-5)
    published = publish(vote(GNMax(sigma=8.0), ledger=ledger))
    published.save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == published.privacy_spent_


@pytest.mark.thorough
def test_another_process_reads_the_file_and_writes_it_again(honest):
    path = honest("ConfidentGNMax")
    code = (
        "import sys; from sklearn_pate.publication import PublishedClassifier; "
        "PublishedClassifier.load(sys.argv[1]).save(sys.argv[2])"
    )
    again = path.with_name("again.skops")
    subprocess.run([sys.executable, "-c", code, path, again], check=True)
    assert PublishedClassifier.load(again).card == card_of(path)


@pytest.mark.parametrize("classes", [[0.0, 1.0, 2.0], [False, True, 2]])
def test_classes_of_another_type_are_refused(honest, classes):
    path = honest("GNMax")
    forge(path, setting(classes=classes))
    with pytest.raises(ValueError, match="classes of the model differ from those on"):
        PublishedClassifier.load(path)


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


# Rounding of another platform.


@pytest.mark.parametrize("part", [1e-12, -1e-12])
def test_rounding_of_costs_is_no_contradiction(honest, part):
    path = honest("GNMax")
    epsilon = card_of(path)["epsilon"]
    forge(path, setting(epsilon=epsilon * (1 + part)))
    assert PublishedClassifier.load(path).privacy_spent_.epsilon == epsilon * (1 + part)
    forge(path, setting(epsilon=epsilon * (1 + 1e5 * part)))
    assert refused(path).startswith("its epsilon is ")


@pytest.mark.slow
@pytest.mark.parametrize(("change", "is_read"), [(0, True), (-1, True), (-2, False)])
def test_rounding_of_guesses_in_the_text_is_no_contradiction(tmp_path, change, is_read):
    def right(sigma):
        cost = GNMax(sigma=sigma).cost(n_queries=N_PUBLIC, n_classes=2)
        return 500 * (1 + cost.delta(0.0))

    sigma = brentq(lambda sigma: right(sigma) - 600.001, 8, 20)
    path = tmp_path / "model.skops"
    publish(vote(GNMax(sigma=sigma), n_classes=2)).save(path)
    text = card_of(path)["statement"]
    assert "at most 601 times" in text
    text = text.replace("at most 601 times", f"at most {601 + change} times")
    forge(path, setting(statement=text))
    if is_read:
        assert text == PublishedClassifier.load(path).privacy_spent_.in_one_line()
    else:
        assert refused(path).startswith("its statement is ")


# One field forged.


@pytest.mark.parametrize("field", _FIELDS)
def test_a_field_that_is_changed_in_both_files_is_refused(honest, field):
    path = honest("GNMax")
    forge(path, lambda card: card | {field: mutated(card[field])})
    readers = [PublishedClassifier.load, read_released]
    if field in FREE:
        if card_of(path)[field] != 1:  # no other type
            assert readers[0](path).card[field] == card_of(path)[field]
        return
    for read in readers[:1] if field in OF_STUDENT else readers:
        with pytest.raises(ValueError, match=r"model|card"):
            read(path)


@pytest.mark.parametrize("field", _FIELDS)
def test_a_field_that_is_changed_on_the_card_alone_is_refused(honest, field):
    path = honest("GNMax")
    text = path.with_suffix(".json")
    card = json.loads(text.read_text())
    text.write_text(json.dumps(card | {field: mutated(card[field])}))
    for read in (PublishedClassifier.load, read_released):
        with pytest.raises(ValueError, match=r"differs from the copy|reads 16|is not "):
            read(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS | OTHER_FITS)
def test_every_value_on_a_card_is_compared(honest, kind):
    assert_every_value_is_compared(card_of(honest(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SYNTHETIC_FITS)
def test_every_value_on_a_card_about_synthetic_rows_is_compared(kind):
    assert_every_value_is_compared(publish(fit_on_synthetic(kind)).card)


NOISE = {
    "GNMax": "sigma",
    "ConfidentGNMax": "sigma_threshold",
    "PETDL": "noise_scale",
    "Private-kNN": "sigma",
}
#: Changes of the fields that all others follow from.
INDEPENDENT = {
    "more noise": lambda kind, card: number(NOISE[kind], 500.0)(card),
    "less noise": lambda kind, card: number(NOISE[kind], 0.7)(card),
    "delta": lambda kind, card: card.update(delta=1e-9, model_delta=1e-9),
    "unit": lambda kind, card: card.update(
        unit="group", relation="add-remove-or-change"
    ),
    "n_teachers": lambda kind, card: card.update(n_teachers=7),
    "n_queries": lambda kind, card: card.update(n_queries=2 * card["n_queries"]),
    "classes": lambda kind, card: card.update(classes=[0, 1]),
    "assumptions": lambda kind, card: card["assumptions"].pop(0) and None,
    "deployment": lambda kind, card: card.update(deployment={"unit_name": "a\u00a0b"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("field", INDEPENDENT)
def test_an_independent_field_decides_the_others(honest, kind, field):
    path = honest(kind)
    forge(path, lambda card: INDEPENDENT[field](kind, card))
    with pytest.raises(ValueError, match=r"is inconsistent|model.* cannot be"):
        PublishedClassifier.load(path)
    if field not in OF_STUDENT:
        with pytest.raises(ValueError, match="is inconsistent"):
            read_released(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_a_smaller_epsilon_in_all_places_is_refused(honest, kind):
    path = honest(kind)
    text = card_of(path)["statement"]
    start, end = text.index("(epsilon="), text.index(")-diff") + 1
    text = text[:start] + "(epsilon=0.100, delta=1e-05)" + text[end:]
    forge(path, setting(epsilon=0.1, statement=text))
    assert refused(path).startswith("its epsilon is 0.1, but ")


def test_the_first_field_that_differs_is_named(honest):
    path = honest("GNMax")
    forge(path, setting(delta=1e-6))
    assert refused(path) == "its delta is 1e-06, but its other fields give 1e-05."


@pytest.mark.parametrize(
    ("unit", "relation"),
    [("party", "add-remove"), ("group", "replace-one"), ("row", "add"), ("rows", "")],
)
def test_a_relation_that_no_unit_has_is_refused(honest, unit, relation):
    path = honest("GNMax")
    assert (unit, relation) not in NEIGHBOURS
    forge(path, setting(unit=unit, relation=relation))
    assert refused(path)


def test_an_assumption_under_the_code_of_another_is_refused(honest):
    path = honest("GNMax")
    first, second, *rest = card_of(path)["assumptions"]
    forge(path, setting(assumptions=[first | {"code": second["code"]}, second, *rest]))
    assert f"its assumption {second['code']!r} is" in refused(path)


@pytest.mark.parametrize("kind", ["nothing private", "nothing private of a sample"])
def test_a_seeded_fit_that_does_not_say_so_is_refused(honest, kind):
    path = honest(kind)
    *assumptions, seeded = card_of(path)["assumptions"]
    assert seeded["code"] == "noise-seeded"
    forge(path, setting(assumptions=assumptions))
    assert "but its other fields give" in refused(path)


def test_seeded_noise_has_no_guarantee(honest):
    path = honest("nothing private")
    forge(path, setting(epsilon=1.0))
    assert refused(path) == "its epsilon is 1.0, but its other fields give None."
