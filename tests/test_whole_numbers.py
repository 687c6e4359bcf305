"""Whole numbers and masked arrays, in all public parameters of this kind."""

import importlib
import inspect
import re
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    Votes,
    mechanisms,
)
from sklearn_pate.accounting import (
    PrivacyProfile,
    RdpCurve,
    tight_gaussian_worst_case,
    tight_laplace_worst_case,
)
from sklearn_pate.accounting.bounds import (
    gaussian_2018,
    laplace_2017_strong_composition,
)
from sklearn_pate.accounting.plurality import release_parameters, sanitize
from sklearn_pate.distributed import Study, cast_votes, shard_of
from sklearn_pate.inspection import (
    AnswerCostDisplay,
    audit_mechanism,
    audit_neighbours,
    plan,
)
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    MeanScores,
    NoisyHistogram,
    NoisySum,
    PermuteAndFlip,
)
from sklearn_pate.model_selection import GroupHashSplit, PrivateSearchCV
from sklearn_pate.publication import Deployment
from sklearn_pate.students import (
    ExpertQueries,
    GraphSelfTrainingClassifier,
    ImageRepresentation,
    InteractiveQueries,
    TableRepresentation,
    UncertaintyQueries,
)
from tests.private import MarginalCounts, NoiseSource

MODULES = [
    "sklearn_pate",
    *["sklearn_pate." + name for name in ("mechanisms", "accounting", "learners")],
    *["sklearn_pate." + name for name in ("inspection", "students", "distributed")],
    *["sklearn_pate." + name for name in ("model_selection", "publication")],
    "sklearn_pate.accounting.bounds",
    "sklearn_pate.accounting.composition",
    "sklearn_pate.accounting.plurality",
]
# Made by the package and not by users, or with a check of another kind.
NOT_TRIED = {
    *["RelationalHint", "Clusters", "Hint", "RandomBatches"],  # checked in a fit
    *["PrivacySpent", "LedgerEntry", "PrivacyAnalysis", "Fact", "Plan"],
    *["LabelAccuracy", "QuerySession", "RandomQueries.choose"],
    *["RepresentativeQueries.choose"],
    *["AnswerCostDisplay.from_estimator", "InteractiveGNMax.sanitized_cost"],
    "NoisyHistogram.sanitized_cost",  # of no instance
}
NEED_TORCH = {
    *["ContrastiveEncoder", "DPSGDClassifier", "FixMatchClassifier", "GANClassifier"],
    *["PETDLClassifier"],
}
PUBLIC_ONLY = {"random_state"}  # scikit-learn's own check

COUNTS = np.array([[60, 30, 10], [80, 15, 5]])
X, Y = np.arange(80.0).reshape(20, 4) % 7, np.arange(20) % 2
X_PUBLIC = X[:10] + 0.5
OTHER = np.vstack([X[:-1], X[:1] + 9])

READY = [
    ConfidentGNMax(threshold=60, sigma_threshold=10, sigma=5),
    GNMax(5),
    GumbelMax(0.1),
    InteractiveGNMax(threshold=60, sigma_threshold=10, sigma=5, n_teachers=100),
    LNMax(0.1),
    MeanScores(noise_scale=5),
    NoisyHistogram(5),
    NoisySum(noise_scale=5, n_parts=1),
    PermuteAndFlip(0.1),
]
SANITIZED = [
    one
    for one in READY
    if hasattr(one, "sanitized_cost") and not isinstance(one, InteractiveGNMax)
]
UNNAMED = ("respond", "estimate")  # called by the package
RIGHT = {
    "n_teachers": 100,
    "n_queries": 10,
    "n_answers": 10,
    "n_classes": 3,
    "n_parts": 2,
    "n_units": 100,
    "n_public": 100,
    "max_answers": 1,
    "max_coordinates": 5,
    "threshold": 60,
}
WRONG = [True, np.True_, 1.5, np.float64(2), -1, "3", [3], np.nan, None, 10**30]
# What some whole numbers may be, besides.
ALSO = {
    "n_jobs": [-1],
    "verbose": [True, 10**30],
    "threshold": [1.5, np.float64(2), 10**30],
    "image_shape": WRONG,  # tried in a test of its own
}


def shards(n_teachers=4, key=0):
    votes = {0: np.array([0, 1, 1])}
    given = {"classes": [0, 1], "privacy_unit": "row", "key": key}
    return Votes.from_shards(votes, np.zeros((3, 2)), n_teachers=n_teachers, **given)


CALLS = {
    "Votes": lambda n_public=3, n_classes=2: Votes(
        [np.zeros(3, int)], n_public=n_public, n_classes=n_classes
    ),
    "Votes.of_counts": lambda n_teachers=100: Votes.of_counts(
        COUNTS, n_teachers=n_teachers
    ),
    "Votes.from_shards": shards,
    "shard_of": lambda n_teachers=4, key=0: shard_of(
        [1], n_teachers=n_teachers, key=key
    ),
    "cast_votes": lambda shard=0, seed=0: cast_votes(
        LogisticRegression(), X, Y, X_PUBLIC, classes=[0, 1], shard=shard, seed=seed
    ),
    "Study": lambda n_rows=8000, n_colluding=1: Study(
        DPNewtonClassifier(classes=[0, 1], random_state=0),
        X_PUBLIC,
        sites=["north", "south"],
        n_rows=n_rows,
        n_colluding=n_colluding,
    ),
    "PrivateMarginals.draw_uniform": lambda n_rows=2: PrivateMarginals(
        (0, 7)
    ).draw_uniform(X, n_rows),
    "Oracle": lambda n_queries=2: mechanisms.Oracle(
        Votes.of_counts(COUNTS, n_teachers=100),
        GNMax(5),
        n_queries=n_queries,
    ),
    "PrivacyProfile.of_units": lambda n_units=2: PrivacyProfile(
        [0, 1], [0.1, 0]
    ).of_units(n_units),
    "tight_gaussian_worst_case": lambda n_classes=2: tight_gaussian_worst_case(
        5, n_classes, [2.0]
    ),
    "tight_laplace_worst_case": lambda n_classes=2: tight_laplace_worst_case(
        0.1, n_classes, [2.0]
    ),
    "laplace_2017_strong_composition": lambda n_queries=9: (
        laplace_2017_strong_composition(n_queries, 0.1, 1e-5)
    ),
    "release_parameters": lambda n_queries=9, n_teachers=100: release_parameters(
        n_queries, n_teachers, 1e-5, sigma=5
    ),
    "sanitize": lambda n_teachers=100: sanitize(
        [-5.0],
        n_teachers=n_teachers,
        delta=1e-5,
        sigma=5,
        **{"order": 16.0, "smoothness": 6e-4, "noise_scale": 5.0},
    ),
    "plan": lambda n_rows=900, n_classes=2: plan(
        PATEClassifier(n_teachers=90, n_queries=9), n_rows=n_rows, n_classes=n_classes
    ),
    "AnswerCostDisplay.from_mechanisms": lambda n_classes=3, n_queries=2: (
        AnswerCostDisplay.from_mechanisms(
            {"a": GNMax(5)}, n_classes=n_classes, n_queries=n_queries, delta=1e-5
        )
    ),
    "audit_mechanism": lambda n_queries=1, n_trials=200, n_repeats=2: audit_mechanism(
        GNMax(5),
        [60, 40],
        [59, 41],
        n_queries=n_queries,
        n_trials=n_trials,
        n_repeats=n_repeats,
    ),
    "audit_neighbours": lambda **given: audit_neighbours(
        fits()[0], (X, Y), (OTHER, Y), X_public=X_PUBLIC, **given
    ),
    "GroupHashSplit": lambda n_splits=1: [
        *GroupHashSplit(n_splits=n_splits).split(X, groups=np.arange(20))
    ],
    "Deployment": lambda n_units=2: Deployment(n_units=n_units),
}


def fits():
    """Estimators whose fit checks their parameters."""
    pate = PATEClassifier(epsilon=8, n_teachers=5)
    return [
        pate,
        PrivateKNNClassifier(epsilon=8),
        DPNewtonClassifier(epsilon=8),
        DPLinearSVC(epsilon=8),
        DPLogisticRegression(epsilon=8),
        DPNaiveBayesClassifier((0, 7), epsilon=8),
        PrivateSearchCV(DPLogisticRegression(epsilon=8), {"C": [0.1, 1]}),
        *[UncertaintyQueries(), InteractiveQueries(), ExpertQueries()],
        PrivateMarginals((0, 7)),
        *[GraphSelfTrainingClassifier(), TableRepresentation(), ImageRepresentation()],
    ]


def fit(estimator):
    pate = PATEClassifier(epsilon=8, n_teachers=5)
    if hasattr(estimator, "query"):
        pate.set_params(query_strategy=estimator).fit(X, Y, X_public=X_PUBLIC)
    elif isinstance(estimator, PrivateMarginals):
        pate.set_params(synthetic=estimator).fit(X, Y)
    elif "X_public" in inspect.signature(estimator.fit).parameters:
        estimator.fit(X, Y, X_public=X_PUBLIC)
    else:
        estimator.fit(X, Y)


def documented(thing):
    """Map the parameters that a docstring calls whole numbers to their types."""
    lines = r"^(\w+(?:, \w+)*) : ((?:tuple of )?int\b.*)$"
    found = re.findall(lines, inspect.getdoc(thing) or "", re.MULTILINE)
    types = {name: one for names, one in found for name in names.split(", ")}
    given = inspect.signature(thing).parameters if types else {}
    return {name: types[name] for name in types if name in given.keys() - PUBLIC_ONLY}


def named(name):
    """Return a public class, function or method, or None without its package."""
    own, _, method = name.partition(".")
    for module in map(importlib.import_module, MODULES):
        if own in module.__all__:
            thing = getattr(module, own)
            return getattr(thing, method) if method else thing
    raise AttributeError(name)


def public():
    """Yield names of public classes, functions and methods with a whole number."""
    for module in map(importlib.import_module, MODULES):
        for own in {*module.__all__} - NEED_TORCH:
            thing = getattr(module, own)
            if not inspect.isclass(thing) and not inspect.isfunction(thing):
                continue
            for key, one in [("", thing), *inspect.getmembers(thing, callable)]:
                is_own = str(getattr(one, "__module__", "")).startswith("sklearn_pate")
                if is_own and key[:1] != "_" and documented(one):
                    yield f"{own}.{key}".rstrip(".")


def of_mechanisms():
    """Yield each method of each mechanism that takes a whole number, and its name."""
    for mechanism in READY:
        for key, method in inspect.getmembers(mechanism, callable):
            if key[0] == "_" or key in UNNAMED:
                continue
            if key == "sanitized_cost" and mechanism not in SANITIZED:
                continue
            for name in sorted(documented(method).keys() & RIGHT.keys()):
                yield pytest.param(method, name, id=f"{mechanism}-{key}-{name}")


def read(mechanism):
    """Return the method that reads counts."""
    if isinstance(mechanism, InteractiveGNMax):
        return partial(mechanism.answer, probabilities=COUNTS / 100)
    return getattr(mechanism, "answer", None) or mechanism.release


def check_wrong(call, name, kind, also=()):
    """Check that every wrong value is refused by the name of the parameter."""
    right = [*map(repr, [*ALSO.get(name, []), *also]), *["None"] * ("None" in kind)]
    for wrong in WRONG:
        if repr(wrong) in right:
            continue
        with pytest.raises(ValueError, match=rf"^{name}[= ].*must be ") as refused:
            call(**{name: wrong})
        assert refused.type is ValueError


@pytest.mark.parametrize(("method", "name"), [*of_mechanisms()])
def test_methods_of_mechanisms_refuse_other_numbers(method, name):
    given = inspect.signature(method).parameters
    others = RIGHT | {"delta": 1e-5, "counts": COUNTS, "probabilities": COUNTS / 100}
    right = {key: others[key] for key in others.keys() & given.keys()}
    kind = documented(method)[name]
    also = [10**30] if name == "n_queries" else []  # a cost has any number
    check_wrong(lambda **wrong: method(**right | wrong), name, kind, also)


@pytest.mark.parametrize("mechanism", READY, ids=str)
def test_mechanisms_refuse_other_numbers(mechanism):
    def call(**wrong):
        other = type(mechanism)(**mechanism.get_params() | wrong)
        read(other)(COUNTS)
        other.cost(10, 3)

    for name, kind in documented(type(mechanism)).items():
        check_wrong(call, name, kind)


@pytest.mark.parametrize("function", CALLS)
def test_functions_refuse_other_numbers(function):
    also = [10**30] if function == "Oracle" else []  # a cost has any number
    for name, kind in documented(named(function)).items():
        check_wrong(CALLS[function], name, kind, also)


@pytest.mark.parametrize("estimator", fits(), ids=lambda one: type(one).__name__)
def test_fits_refuse_other_numbers(estimator):
    def call(**wrong):
        fit(type(estimator)(**estimator.get_params(deep=False) | wrong))

    for name, kind in documented(type(estimator)).items():
        check_wrong(call, name, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NEED_TORCH - {"DPSGDClassifier"}))
def test_networks_refuse_other_numbers(name):
    pytest.importorskip("torch")
    rows, labels = X.astype(np.float32), np.where(np.arange(20) < 15, Y, -1)
    kind = named(name)

    def call(**wrong):
        if name == "PETDLClassifier":
            kind(**{"batches": Clusters(5)} | wrong).fit(X, Y, X_public=X_PUBLIC)
        elif name == "ContrastiveEncoder":
            kind(**wrong).fit(rows)
        else:
            kind(**wrong).fit(rows, labels)

    for key, types in documented(kind).items():
        check_wrong(call, key, types)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FixMatchClassifier", "ImageRepresentation"])
@pytest.mark.parametrize("wrong", [2, 1.5, "3", (2.0, 2), (-2, -2), (True, 4), (4,)])
def test_shapes_of_images_are_whole_numbers(name, wrong):
    pytest.importorskip("torch")
    estimator = named(name)(image_shape=wrong)
    with pytest.raises(ValueError, match=r"^image_shape=.* must be \(height, width\)"):
        estimator.fit(X.astype(np.float32), Y)


@pytest.mark.slow  # imports all networks
def test_every_whole_number_is_tried():
    made = {type(one).__name__ for one in [*fits(), *READY]}
    of_mechanism = {
        f"{one}.{key.values[0].__name__}"
        for key in of_mechanisms()
        for one in [
            type(key.values[0].__self__).__name__,
            "Mechanism",
            "PluralityMechanism",
        ]
    }
    others = {*public()} - {*CALLS} - made - of_mechanism - NOT_TRIED
    assert {one for one in others if one.partition(".")[2] not in UNNAMED} == set()


MASKED = np.ma.masked_array([[60, 30, 10], [80, 15, 5]], mask=[[0, 1, 0], [0, 0, 0]])
LAW = {"delta": 1e-5, "n_teachers": 100, "order": 16.0, "sigma": 5.0}
READ = {
    **{str(one): read(one) for one in READY},
    **{f"cost of {one}": one.local_curve for one in SANITIZED},
    "probabilities": lambda one: READY[3].answer(COUNTS, probabilities=one),
    "one row of probabilities": lambda one: READY[3].enumerated_curve(
        [3, 1, 0], probabilities=one[0]
    ),
    "one row of counts": lambda one: GNMax(5).enumerated_curve(one[0]),
    "histogram": lambda one: NoisyHistogram(5).release(one),
    "counts of marginals": lambda one: MarginalCounts(5).release(one[0], NoiseSource()),
    "votes": lambda one: Votes(one, n_public=3, n_classes=100),
    "counts of votes": lambda one: Votes.of_counts(one, n_teachers=100),
    "bound": lambda one: gaussian_2018(one, 5),
    "votes by teacher": lambda one: GNMax(5).local_curve(
        [[2, 0, 0]] * 3, votes_by_teacher=one
    ),
    "curve": lambda one: RdpCurve([2.0, 3.0, 4.0], one[0]),
    "orders": lambda one: RdpCurve(one[0], [2.0, 3.0, 4.0]),
    "profile": lambda one: PrivacyProfile([0.0, 1.0, 2.0], one[0]),
    "epsilons": lambda one: PrivacyProfile(one[0], [0.3, 0.2, 0.1]),
    "log q": lambda one: sanitize(-one[0], smoothness=6e-4, noise_scale=5.0, **LAW),
    "audited counts": lambda one: audit_mechanism(GNMax(5), one[0], [60, 31, 9]),
    "class prior": lambda one: plan(
        PATEClassifier(), n_rows=900, class_prior=one[0] / 100
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_hidden_values_of_masked_arrays_are_not_read(name):
    for masked in (MASKED, [*MASKED]):
        with pytest.raises(ValueError, match=r" is a masked array, whose mask"):
            READ[name](masked)
