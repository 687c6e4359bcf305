"""Units of privacy and neighbour relations, wherever public names take them."""

import inspect
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    Votes,
)
from sklearn_pate.accounting import Cost, OtherRelease, RdpCurve
from sklearn_pate.inspection import (
    EpsilonDeltaDisplay,
    PrivacyUtilityDisplay,
)
from sklearn_pate.learners import (
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    MeanScores,
    Mechanism,
    NoisyHistogram,
    NoisySum,
    PermuteAndFlip,
    PluralityMechanism,
)
from tests.private import (
    DPSGDSteps,
    MarginalCounts,
    NewtonSteps,
    NoisyObjective,
    SampledMechanism,
    SelectedFit,
    TwoPartRelease,
)

CURVE = RdpCurve([2.0, 3.0], [0.1, 0.2])
X, Y = np.random.RandomState(0).standard_normal((60, 2)), np.arange(60) % 2
PUBLIC = PublicData(X[:20])
SPENT = DPNaiveBayesClassifier((-3, 3), classes=[0, 1]).plan_privacy(X, Y)

MECHANISMS = [
    GNMax(30),
    ConfidentGNMax(60, 30, 30),
    InteractiveGNMax(60, 30, 30),
    NoisyHistogram(30),
    LNMax(0.1),
    GumbelMax(0.1),
    PermuteAndFlip(0.1),
    MeanScores(noise_scale=4),
    NoisySum(4),
    MarginalCounts(30),
    MarginalCounts(30, add_remove=True),
    TwoPartRelease(MarginalCounts(30), GNMax(30)),
    NewtonSteps(4),
    DPSGDSteps(1.0, 0.1, 10, 1.0, 10),
    NoisyObjective("DPLinearSVC", "output", 0.1, 0.0, 1.0, 1.0, 1),
    SampledMechanism(GNMax(30), 0.1),
    SelectedFit("PATE", "logarithmic", 10, 9.0, False, [CURVE], False, False),
]


def votes(privacy_unit, kept="row"):
    """Answer by the votes of shards, or count these votes."""
    counted = Votes.from_shards(
        {shard: np.arange(20) % 2 for shard in range(60)},
        X[:20],
        classes=[0, 1],
        n_teachers=60,
        key=b"k" * 32,
        privacy_unit=kept,
    )
    pate = PATEClassifier(GaussianNB(), GaussianNB(), classes=[0, 1])
    return pate.fit_from_votes(PUBLIC, counted, privacy_unit=privacy_unit)


# By public name, calls that take a unit of privacy.
UNITS = {
    "PATEClassifier": lambda unit: PATEClassifier(
        n_teachers=50, n_queries=5, privacy_unit=unit
    ).plan_privacy(X, Y, X_public=PUBLIC, groups=Y),
    "PATEClassifier.fit_from_votes": votes,
    "Votes.from_shards": lambda unit: votes(unit, kept=unit),
    "DPNewtonClassifier": lambda unit: DPNewtonClassifier(
        privacy_unit=unit
    ).plan_privacy(X, Y, X_public=PUBLIC, groups=Y),
    "DPNaiveBayesClassifier": lambda unit: DPNaiveBayesClassifier(
        (-3, 3), privacy_unit=unit
    ).plan_privacy(X, Y, groups=Y),
    "PETDLClassifier": lambda unit: PETDLClassifier(privacy_unit=unit).plan_privacy(
        X, Y, X_public=PUBLIC, groups=Y
    ),
    "PrivateKNNClassifier": lambda unit: PrivateKNNClassifier(
        privacy_unit=unit
    ).plan_privacy(X, Y, X_public=PUBLIC, groups=Y),
}
# By public name, calls that take a unit and a neighbour relation.
PAIRS = {
    "Cost": lambda unit, relation: Cost(unit, relation, CURVE),
    "PrivacySpent": lambda unit, relation: replace(SPENT, unit=unit, relation=relation),
    "OtherRelease": lambda unit, relation: OtherRelease(CURVE, unit, relation, ""),
    "OtherRelease.from_pure": lambda unit, relation: OtherRelease.from_pure(
        1.0, unit=unit, relation=relation
    ),
    "OtherRelease.from_zcdp": lambda unit, relation: OtherRelease.from_zcdp(
        1.0, unit=unit, relation=relation
    ),
    "OtherRelease.from_approximate": lambda unit, relation: (
        OtherRelease.from_approximate(1.0, 1e-9, unit=unit, relation=relation)
    ),
    "OtherRelease.from_dp_accounting": lambda unit, relation: (
        OtherRelease.from_dp_accounting(
            pytest.importorskip("dp_accounting").GaussianDpEvent(1.0),
            unit=unit,
            relation=relation,
        )
    ),
    "EpsilonDeltaDisplay": lambda unit, relation: EpsilonDeltaDisplay(
        deltas=[1e-7, 1e-5],
        epsilons={"a fit": [1.2, 1.0]},
        stated={"a fit": (1.0, 1e-5)},
        unit=unit,
        relation=relation,
    ),
    "PrivacyUtilityDisplay": lambda unit, relation: PrivacyUtilityDisplay(
        epsilons=[1.0], scores=[0.5], sensitive=False, unit=unit, relation=relation
    ),
}
RELATIONS = {
    "RdpCurve.to_dp_accounting": CURVE.to_dp_accounting,
    "OtherRelease.to_relation": OtherRelease.from_pure(
        1.0, relation="add-remove"
    ).to_relation,
}
WRONG_UNITS = ["rows", "Row", "patient", "", None, 1, ["row"]]
# The first three have the relation of another unit.
WRONG_PAIRS = [
    *[("group", "replace-one"), ("row", "add-remove-or-change")],
    *[("party", "add-remove"), ("rows", "replace-one"), ("row", "replace")],
    *[(["row"], "replace-one"), ("row", ["add-remove"]), (1, 2)],
]


def takes(*names):
    """List public callables with a parameter of one of the names."""
    from tests.test_public_names import exported, resolve  # imports torch

    found = set()
    for thing in map(resolve, exported()):
        if not callable(thing):
            continue
        members = [("", thing)]
        if inspect.isclass(thing):
            members += inspect.getmembers(thing, callable)
        for name, one in members:
            if name.startswith("_"):
                continue
            try:
                parameters = inspect.signature(one).parameters
            except (TypeError, ValueError):
                continue
            if not {*names}.isdisjoint(parameters):
                found.add(f"{thing.__name__}.{name}".rstrip("."))
    return found


@pytest.mark.slow
def test_every_unit_and_every_relation_is_tried():
    of_mechanisms = {
        f"{kind.__name__}.{method}"
        for kind in [Mechanism, PluralityMechanism, *map(type, MECHANISMS)]
        for method in ("cost", "relation", "prepared")
    }
    tried = {*UNITS, *PAIRS, *RELATIONS, "PrivacyLedger.charge"}
    names = "unit", "privacy_unit", "relation", "before"
    assert takes(*names) - of_mechanisms == tried


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("unit", WRONG_UNITS)
def test_no_mechanism_has_a_cost_for_an_unknown_unit(mechanism, unit):
    for call in (mechanism.relation, lambda unit: mechanism.cost(5, 2, unit=unit)):
        with pytest.raises(ValueError, match=f"^unit={re.escape(repr(unit))}"):
            call(unit=unit)


@pytest.mark.parametrize("unit", WRONG_UNITS)
@pytest.mark.parametrize("name", UNITS)
def test_an_unknown_unit_is_refused(name, unit):
    if (name, unit) == ("PATEClassifier.fit_from_votes", None):
        return  # a party
    with pytest.raises(ValueError, match=f"privacy_unit={re.escape(repr(unit))}"):
        UNITS[name](unit)


@pytest.mark.parametrize("pair", WRONG_PAIRS, ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_an_unknown_pair_of_unit_and_relation_is_refused(name, pair):
    with pytest.raises(ValueError, match=r"(unit|relation)=.* (unknown|not apply)"):
        PAIRS[name](*pair)


@pytest.mark.parametrize("relation", ["replace", "", None, ["add-remove"], 1])
@pytest.mark.parametrize("name", RELATIONS)
def test_an_unknown_relation_is_refused(name, relation):
    with pytest.raises(ValueError, match="relation="):
        RELATIONS[name](relation)


@pytest.mark.parametrize("pair", WRONG_PAIRS, ids=str)
def test_a_ledger_is_not_charged_for_an_unknown_pair(tmp_path, pair):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=9, delta=1e-5)
    unit, relation = pair
    with pytest.raises(ValueError, match=r"(unit|relation)="):
        ledger.charge(
            CURVE, delta=1e-5, unit=unit, relation=relation, description="a release"
        )
    assert not ledger.entries()


NUMBERS = {"n_teachers": 100, "n_queries": 10, "n_classes": 2}
PREPARED = {
    **{
        type(one).__name__: partial(clone(one).prepared, **NUMBERS)
        for one in MECHANISMS
        if isinstance(one, PluralityMechanism)
    },
    "GNMax, calibrated": partial(GNMax().prepared, **NUMBERS, epsilon=1.0),
    "MeanScores": partial(MeanScores().prepared, epsilon=1.0),
    "NoisySum": partial(NoisySum(4.0).prepared, n_parts=1),
    "NewtonSteps": partial(NewtonSteps().prepared, epsilon=1.0, delta=1e-5),
    "SampledMechanism": partial(
        SampledMechanism(GNMax(), 0.1).prepared, n_queries=10, epsilon=1.0
    ),
}


def counts(name, *, alike, unit):
    """Return the cost of counts that adds up with that of a mechanism, or does not."""
    is_sampled = name == "SampledMechanism"
    return MarginalCounts(30.0, add_remove=is_sampled == alike).cost(unit=unit)


@pytest.mark.parametrize("unit", ["row", "group"])
@pytest.mark.parametrize("name", PREPARED)
def test_a_release_before_is_for_the_same_neighbours(name, unit):
    PREPARED[name](before=counts(name, alike=True, unit=unit))
    with pytest.raises(ValueError, match=r"`before` and \w+ for unit=.* do not add up"):
        PREPARED[name](before=counts(name, alike=False, unit=unit))


@pytest.mark.parametrize("before", [CURVE, SPENT, 1.0, "0.5"], ids=type)
@pytest.mark.parametrize("name", PREPARED)
def test_a_release_before_has_a_cost(name, before):
    with pytest.raises(ValueError, match=r"^before=.* must be a Cost"):
        PREPARED[name](before=before)
