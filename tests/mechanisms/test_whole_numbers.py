"""Numbers of queries, teachers and classes, and masked counts, of every mechanism."""

import inspect

import numpy as np
import pytest

from sklearn_pate import mechanisms
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
    ScoreSteps,
)

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
    ScoreSteps(noise_scale=5),
]
RIGHT = {
    "n_teachers": 100,
    "n_queries": 10,
    "n_answers": 10,
    "n_classes": 3,
    "n_parts": 2,
    "n_units": 100,
    "n_public": 100,
}
WRONG = [True, np.True_, 1.5, -1, "3", np.nan, None]
METHODS = ("account_curve", "worst_case_curve", "stated_curve", "prepared")


def calls():
    """Yield each method with numbers, and the name of one."""
    for mechanism in READY:
        for method in METHODS:
            if not hasattr(mechanism, method):
                continue
            given = inspect.signature(getattr(mechanism, method)).parameters
            for name in sorted(RIGHT.keys() & given.keys()):
                yield pytest.param(
                    mechanism, method, name, id=f"{mechanism}-{method}-{name}"
                )


def test_every_mechanism_is_tried():
    public = [getattr(mechanisms, name) for name in mechanisms.__all__]
    answering = {
        one
        for one in public
        if isinstance(one, type)
        and hasattr(one, "respond")
        and not inspect.isabstract(one)
    }
    assert answering == {type(one) for one in READY} - {Mechanism}


@pytest.mark.parametrize(("mechanism", "method", "name"), [*calls()])
def test_a_number_that_is_not_whole_is_refused_by_its_name(mechanism, method, name):
    call = getattr(mechanism, method)
    given = inspect.signature(call).parameters
    right = {key: RIGHT[key] for key in RIGHT.keys() & given.keys()}
    call(**right)
    for wrong in WRONG:
        if wrong is None and given[name].default is None:
            continue
        with pytest.raises(ValueError, match=rf"{name}=.* must be a whole number"):
            call(**right | {name: wrong})


@pytest.mark.parametrize("mechanism", READY, ids=str)
def test_hidden_values_of_masked_counts_are_not_read(mechanism):
    rows = np.ma.masked_array([[10, 5, 3], [3, 4, 1]], mask=[[0, 1, 0], [0, 0, 0]])
    read = getattr(mechanism, "answer", None) or mechanism.release
    for masked in (rows, [*rows]):
        with pytest.raises(ValueError, match=r"masked array, whose mask"):
            read(masked)
