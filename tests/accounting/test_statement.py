"""PrivacySpent: checks of its fields, its sentence and its figures."""

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sklearn_pate.accounting import (
    DEFAULT_ORDERS,
    Assumption,
    Cost,
    PrivacySpent,
    RdpCurve,
)
from sklearn_pate.accounting.bounds import pure_dp_curve
from tests.private import (
    LABEL_SET,
    NEIGHBOURS,
    GaussianTest,
    capitalised,
    gdp_epsilon,
    state_cost,
    write_epsilon,
)

SPENT = PrivacySpent(
    epsilon=1.0,
    delta=0.0,
    unit="row",
    relation="replace-one",
    release="model",
    mechanism="NoisyTree(depth=3)",
    n_teachers=None,
    n_queries=None,
    assumptions=(LABEL_SET, Assumption("consent", "everybody consented", "Where?")),
    curve=pure_dp_curve(1.0),
)


REPLACED_ROW = ("row", "replace-one")


@pytest.mark.parametrize(("unit", "relation"), NEIGHBOURS)
def test_the_neighbours_follow_from_unit_and_relation(unit, relation):
    spent = replace(SPENT, unit=unit, relation=relation)
    assert spent.neighbours == NEIGHBOURS[unit, relation]
    assert f"Neighbours: {capitalised(spent.neighbours)}. " in spent.in_one_line()
    assert pickle.loads(pickle.dumps(spent)) == spent


def test_the_neighbours_cannot_be_set():
    with pytest.raises(AttributeError):
        SPENT.neighbours = "change one bit"


@pytest.mark.parametrize(
    ("unit", "relation"),
    [
        ("group", "replace-one"),
        ("row", "add-remove-or-change"),
        ("party", "add-remove"),
        ("household", "replace-one"),
    ],
)
def test_an_unknown_combination_is_refused(unit, relation):
    message = f"unit='{unit}' with relation='{relation}' is unknown; "
    with pytest.raises(ValueError, match=message):
        replace(SPENT, unit=unit, relation=relation)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"release": "nothing"}, "release='nothing' is unknown; use one of"),
        ({"release": "answers"}, "needs n_teachers and n_queries, got None and None"),
        (
            {"release": "sum", "n_teachers": 9},
            "needs n_teachers and n_queries, got 9 and None",
        ),
        ({"assumptions": ()}, r"assumptions=\(\) must hold at least one"),
        ({"assumptions": ("it rains",)}, r"assumptions=\('it rains',\) must hold"),
    ],
)
def test_an_incomplete_release_or_assumptions_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SPENT, **changes)


def test_assumptions_are_stated_by_their_sentences():
    *_, first, second = str(SPENT).splitlines()
    assert first.strip() == "The set of labels is public."
    assert second.strip() == "Everybody consented."


@pytest.mark.parametrize(("unit", "relation"), NEIGHBOURS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_risk_is_the_bound_on_guesses_rounded_up(unit, relation, epsilon):
    spent = replace(
        SPENT,
        epsilon=epsilon,
        unit=unit,
        relation=relation,
        curve=pure_dp_curve(epsilon),
        profile=None,
    )
    right = int(np.ceil(1000 * np.exp(epsilon) / (1 + np.exp(epsilon))))
    at_most = f"at most {right} times" if right < 1000 else "perhaps every time"
    text = spent.in_one_line()
    assert f"right 500 times in 1000. With this model, {at_most}. Neighbours" in text
    assert f"one {unit}" in text
    assert ("equally likely values" in text) == ((unit, relation) == REPLACED_ROW)
    assert ("is in the data" in text or "are in the data" in text) == (
        relation != "replace-one"
    )


def test_a_statement_has_a_line_for_each_fact_and_a_name_for_it():
    lines = str(SPENT).splitlines()
    assert max(map(len, lines)) <= 80
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == [
        *("guarantee", "risk", "neighbours", "release", "covered", "assumptions")
    ]
    assert " ".join(str(SPENT).split()).lower() == SPENT.in_one_line().lower().replace(
        ": ", " "
    ).replace("true ", "true: ")


def test_a_statement_without_a_guarantee_has_no_figure_of_risk():
    void = replace(SPENT, epsilon=np.inf, curve=SPENT.curve.unbounded(), profile=None)
    assert "There is no limit on what an attacker can learn." in str(void)
    assert "1000" not in str(void)
    assert "There is a guarantee" not in str(void)


def test_every_sentence_has_at_most_25_words():
    for unit, relation in NEIGHBOURS:
        for release in ("model", "search", "newton", "several"):
            spent = replace(SPENT, unit=unit, relation=relation, release=release)
            text = spent.in_one_line().replace("Neighbours: ", "")
            for sentence in re.split(r"(?<=[.:]) ", text):
                assert len(sentence.split()) <= 25, sentence


def test_a_statement_as_plain_values_includes_the_neighbours_in_words():
    plain = json.loads(json.dumps(SPENT.to_dict()))
    assert plain == {
        "epsilon": 1.0,
        "delta": 0.0,
        "unit": "row",
        "relation": "replace-one",
        "release": "model",
        "neighbours": SPENT.neighbours,
        "mechanism": "NoisyTree(depth=3)",
        "n_teachers": None,
        "n_queries": None,
        "n_tables": None,
        "n_coded": None,
        "class_count": False,
        "assumptions": [
            {"code": "label-set-public", "sentence": "the set of labels is public"},
            {"code": "consent", "sentence": "everybody consented"},
        ],
        "profile": [[0.0, pytest.approx(np.tanh(0.5))], [1.0, 0.0]],
        "mu": None,
        "facts": SPENT.facts.to_dict(),
    }


@given(st.floats(1e-300, 1e6))
@example(1e-12)
@example(1.0005)
def test_epsilon_is_never_written_below_its_value(epsilon):
    written = float(write_epsilon(epsilon))
    # Up to a last digit, which calibration or a product may have rounded up.
    assert epsilon * (1 - 1e-11) <= written <= epsilon * (1 + 1e-11) + 0.001


def test_an_epsilon_with_three_decimals_is_written_unchanged():
    for epsilon in np.arange(1, 5000) / 1000:
        assert write_epsilon(epsilon) == f"{epsilon:.3f}"
    assert write_epsilon(0.0) == "0.000"
    assert write_epsilon(np.inf) == "inf"


def of_gaussian(mu, **changes):
    curve = RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS * mu**2 / 2)
    cost = Cost("row", "replace-one", curve, GaussianTest(mu))
    spent = state_cost(
        cost, 1e-5, release="metrics", mechanism="M", assumptions=(LABEL_SET,)
    )
    return replace(spent, **changes)


def test_gaussian_statements_add_up_by_the_squares_of_mu():
    total = of_gaussian(0.3) + of_gaussian(0.4)
    assert total.mu == pytest.approx(0.5)
    assert total.epsilon == pytest.approx(gdp_epsilon(0.5, 1e-5), rel=1e-3)
    assert total.epsilon >= gdp_epsilon(0.5, 1e-5) * (1 - 1e-9)
    assert total.delta_at(total.epsilon) <= 1e-5
    assert total.assumptions == (LABEL_SET,)


def test_the_sum_of_two_statements_is_at_most_the_sum_of_their_epsilons():
    total = SPENT + of_gaussian(0.3)
    assert SPENT.epsilon < total.epsilon <= SPENT.epsilon + of_gaussian(0.3).epsilon
    assert total.delta == 1e-5
    assert (SPENT + SPENT).epsilon == 2
    assert (SPENT + SPENT).delta == 0
    assert "NoisyTree(depth=3) and by M" in str(total)


def test_a_sum_with_a_seeded_release_has_no_guarantee():
    seeded = replace(SPENT, epsilon=np.inf, curve=SPENT.curve.unbounded(), profile=None)
    assert (of_gaussian(0.3) + seeded).epsilon == np.inf


def test_statements_of_two_units_do_not_add_up():
    groups = of_gaussian(0.3, unit="group", relation="add-remove-or-change")
    with pytest.raises(ValueError, match=r"'row' .* unit='group' .* do not add up"):
        SPENT + groups
