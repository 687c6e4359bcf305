"""Facts follow from the fields of a statement, and promise no more than these."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pate.accounting import PrivacyProfile, PrivacySpent, StatementFacts
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.mechanisms import GNMax, MeanScores, NoisyHistogram
from tests.private import (
    ASSUMPTIONS,
    BOUNDS,
    CHOSEN_BLINDLY,
    COLUMNS,
    FLOATING_POINT,
    HEADINGS,
    LABEL_SET,
    N_ROWS,
    NEIGHBOURS,
    PROTECTED,
    PUBLIC_ROWS,
    RELEASES,
    SEEDED,
    UNPROTECTED,
    gaussian_profile,
    kind_of,
    sentences_of,
)

PURE = PrivacySpent(
    epsilon=1.0,
    delta=0.0,
    unit="row",
    relation="replace-one",
    release="model",
    mechanism="noise",
    n_teachers=None,
    n_queries=None,
    assumptions=(LABEL_SET, COLUMNS, BOUNDS, FLOATING_POINT, CHOSEN_BLINDLY),
    curve=pure_dp_curve(1.0),
)
VOTES = replace(
    PURE,
    delta=1e-5,
    release="answers",
    n_teachers=20,
    n_queries=40,
    assumptions=(LABEL_SET, PUBLIC_ROWS, CHOSEN_BLINDLY),
    profile=PrivacyProfile([0.0, 1.0], [0.1, 1e-5]),
)
# Assumptions about what people did, which make no quantity public.
NO_QUANTITY = {
    "quality-rows-public",
    "party-own-data",
    "one-party-each",
    "other-random-state",
    "representation-public",
    "representation-row-alone",
    "frozen-public",
    "network-row-by-row",
    "floating-point",
    "search-secret",
    "fits-alike",
    "noise-seeded",
    "norm-read",
    "sites-draw-noise",
    "fingerprint-compared",
    "masks-unbroken",
    "shards-by-key",
    "shard-own-rows",
    "one-site-each",
    "model-is-public",
    "fitted-apart",
    "scores-of-row",
}


def test_a_pure_statement_has_the_rho_of_its_epsilon():
    assert PURE.facts.variant == "pure"
    assert PURE.facts.rho == 0.5
    assert (
        replace(PURE, epsilon=2.0, profile=None, curve=pure_dp_curve(2)).facts.rho == 2
    )


def test_a_statement_with_delta_has_no_rho_unless_a_mu_is_proved():
    assert VOTES.facts.variant == "approximate"
    assert VOTES.facts.rho is None
    assert VOTES.facts.composition == "renyi"
    gaussian = replace(VOTES, mu=0.5)
    assert gaussian.facts.rho == 0.125
    assert gaussian.facts.composition == "gaussian"


def test_a_pure_epsilon_above_the_stated_one_gives_rho():
    pure_at_two = PrivacyProfile([0.0, 1.0, 2.0], [0.1, 1e-5, 0.0])
    assert replace(VOTES, profile=pure_at_two).facts.rho == 2.0


@pytest.mark.parametrize("mu", [0.0, -1.0, np.inf, np.nan])
def test_a_mu_that_is_no_positive_number_is_refused(mu):
    with pytest.raises(ValueError, match=r"mu=.* must be a positive, finite number"):
        replace(VOTES, mu=mu)


@pytest.mark.parametrize("n_queries", [1, 3, 7])
@pytest.mark.parametrize(
    "mechanism", [NoisyHistogram(sigma=9.0), MeanScores(noise_scale=4.0)]
)
def test_rho_of_a_gaussian_release_bounds_its_renyi_curve(mechanism, n_queries):
    mu = mechanism.cost(n_queries).mu
    curve = mechanism.cost(n_queries, 3).curve
    rho = replace(VOTES, mu=mu).facts.rho
    assert np.all(curve.values <= curve.orders * rho * (1 + 1e-12))
    # Larger than with continuous noise by the share of rounding alone.
    assert rho < curve.values[0] / curve.orders[0] * 1.05
    of_mu, stated = gaussian_profile(mu), mechanism.cost(n_queries, 3).profile
    assert np.all(stated.deltas <= of_mu.delta_at(stated.epsilons) + 1e-12)


def test_votes_that_are_not_gaussian_have_no_mu():
    assert GNMax(sigma=9.0).cost(10).mu is None


def test_no_guarantee_protects_nothing():
    nothing = replace(
        VOTES,
        epsilon=np.inf,
        curve=VOTES.curve.unbounded(),
        profile=None,
        assumptions=(*VOTES.assumptions, SEEDED),
    )
    facts = nothing.facts
    assert (facts.variant, facts.protected, facts.rho) == ("none", "", None)
    assert facts.randomness == "seeded"
    assert "protected" not in facts.sentences()


def test_every_assumption_names_a_public_quantity_or_is_about_none():
    assert UNPROTECTED.keys() & NO_QUANTITY == set()
    assert UNPROTECTED.keys() | NO_QUANTITY == ASSUMPTIONS.keys()


def test_every_unit_and_relation_has_its_protected_content():
    assert PROTECTED.keys() == NEIGHBOURS.keys()
    for unit, relation in NEIGHBOURS:
        facts = replace(VOTES, unit=unit, relation=relation).facts
        assert unit in facts.protected
        assert ("presence" in facts.protected) == ("add-remove" in relation)


@pytest.mark.parametrize(("unit", "relation"), NEIGHBOURS)
def test_the_number_of_units_is_public_if_the_relation_keeps_it(unit, relation):
    facts = replace(VOTES, unit=unit, relation=relation).facts
    assert facts.count_is_public == (relation == "replace-one")
    plural = {"party": "parties"}.get(unit, f"{unit}s")
    assert (f"number of {plural}" in facts.unprotected) == facts.count_is_public


def test_the_number_of_rows_is_public_if_it_is_assumed_to_be():
    added = replace(PURE, relation="add-remove", assumptions=(LABEL_SET, N_ROWS))
    assert added.facts.count_is_public
    groups = replace(added, unit="group")
    assert not groups.facts.count_is_public


def test_a_quantity_is_listed_once():
    facts = replace(PURE, assumptions=(*PURE.assumptions, N_ROWS)).facts
    assert facts.unprotected.count("number of rows") == 1


def test_a_collector_has_the_votes_of_parties():
    assert replace(VOTES, unit="party").facts.trust_model == "collector"
    assert VOTES.facts.trust_model == "central"


def test_a_search_pays_for_the_choice_of_parameters():
    assert replace(VOTES, release="search").facts.tuning == "paid"
    assert VOTES.facts.tuning == "blind"
    assert replace(VOTES, assumptions=(LABEL_SET,)).facts.tuning == "unknown"


def test_nothing_is_claimed_about_the_noise_of_an_unknown_learner():
    unknown = replace(PURE, assumptions=(LABEL_SET,)).facts
    assert (unknown.arithmetic, unknown.randomness, unknown.composition) == (
        "unknown",
        "unknown",
        "unknown",
    )
    assert PURE.facts.arithmetic == "floating-point"
    assert VOTES.facts.arithmetic == "whole-numbers"


@pytest.mark.parametrize(
    ("release", "pair", "assumptions"),
    [*product(RELEASES, NEIGHBOURS, [(LABEL_SET,), tuple(ASSUMPTIONS.values())])],
)
def test_every_fact_has_a_heading_and_a_sentence(release, pair, assumptions):
    spent = replace(
        VOTES,
        release=release,
        unit=pair[0],
        relation=pair[1],
        assumptions=assumptions,
        mu=0.1234567,
    )
    assert kind_of(spent)
    sentences = spent.facts.sentences()
    assert list(sentences) == list(HEADINGS)
    for text in sentences.values():
        assert text[0].isupper()
        assert text.endswith(".")
        assert "  " not in text


def test_facts_are_plain_values_that_come_back():
    facts = replace(VOTES, mu=0.3).facts
    plain = json.loads(json.dumps(facts.to_dict(), allow_nan=False))
    again = StatementFacts(**plain | {"unprotected": tuple(plain["unprotected"])})
    assert again == facts
    assert sentences_of(plain) == facts.sentences()


@given(st.floats(1e-6, 1e3))
def test_rho_and_mu_are_written_rounded_up(mu):
    sentences = replace(VOTES, mu=mu).facts.sentences()
    for name, value in (("mu", mu), ("rho", mu**2 / 2)):
        written = float(sentences[name].partition(f"{name}=")[2].rstrip("."))
        assert value * (1 - 1e-12) <= written <= value * 1.00002
