"""Files of every private classifier whose statement was forged."""

from copy import deepcopy
from dataclasses import replace

import pytest

from sklearn_pate import PublishedClassifier
from tests.private import checked_statements, last_step, rebuilt
from tests.publication.forging import assert_every_value_is_compared
from tests.publication.learners import LEARNERS, TRUSTED


def forge(path, change):
    """Write a card and a model anew, alike, with a changed statement."""
    published = PublishedClassifier.load(path, trusted=TRUSTED)
    change(published)
    published._card["statement"] = published.privacy_spent_.in_one_line()
    published.save(path, overwrite=True)


@pytest.mark.parametrize("part", [2e-6, 2e-5])
def test_rounding_of_steps_on_another_platform_is_no_contradiction(
    part, originals, tmp_path
):
    path = tmp_path / "model.skops"
    originals("dpsgd").save(path)

    def lower(published):
        spent = published.privacy_spent_
        epsilon = published._card["epsilon"] = spent.epsilon * (1 - part)
        published.privacy_spent_ = replace(spent, epsilon=epsilon)

    forge(path, lower)
    if part > 1e-5:
        with pytest.raises(ValueError, match="its epsilon is "):
            PublishedClassifier.load(path, trusted=TRUSTED)
    else:
        PublishedClassifier.load(path, trusted=TRUSTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_every_value_on_a_card_is_compared(name, originals):
    assert_every_value_is_compared(originals(name).card)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "costs"),
    [("search", []), ("pure search", [{"pure_epsilon": 5.0, "values": None}])],
)
def test_other_costs_of_the_fits_of_a_search_are_refused(name, costs, originals):
    card = originals(name).card
    card["mechanism"]["parameters"]["fits"] = costs
    with pytest.raises(ValueError, match=r"fits is empty|its epsilon is"):
        checked_statements(card)


#: In each, the fit that won costs more than the search accounts for.
WINNERS = [
    ("search", "sigma", 0.1, "costs more than each"),
    ("search of networks", "noise_multiplier", 0.3, "costs more than each"),
    ("pure search", "output_scale", 1e-6, "costs more than each"),
]


def restate(published, fields):
    """Let the card say of a winner what its changed mechanism is in words."""
    text = rebuilt(fields).in_one_line()
    published.privacy_spent_ = replace(published.privacy_spent_, mechanism=text)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter", "value", "message"), WINNERS)
def test_a_winner_that_costs_more_than_its_search_is_refused(
    name, parameter, value, message, fits, tmp_path
):
    path = tmp_path / "winner.skops"
    search = fits(name)
    last_step(search.best_estimator_).publish().save(path)

    def change(published):
        fields = published._card["mechanism"]
        of_fit = fields["parameters"]["fit"]
        # Of balanced votes, the second part is the mechanism of answers.
        answers = of_fit["parameters"].get("mechanism", of_fit)
        answers["parameters"][parameter] = value
        restate(published, fields)

    forge(path, change)
    with pytest.raises(ValueError, match=message):
        PublishedClassifier.load(path, trusted=TRUSTED)


@pytest.mark.slow
def test_a_winner_without_its_number_of_queries_is_refused(fits, tmp_path):
    path = tmp_path / "winner.skops"
    fits("search").best_estimator_.publish().save(path)

    def change(published):
        published._card["n_queries"] = None
        published.privacy_spent_ = replace(published.privacy_spent_, n_queries=None)

    forge(path, change)
    with pytest.raises(ValueError, match="GNMax, needs n_queries"):
        PublishedClassifier.load(path)


@pytest.mark.slow
def test_a_winner_of_another_relation_than_its_search_is_refused(fits, tmp_path):
    path = tmp_path / "winner.skops"
    search = fits("search of networks")
    last_step(search.best_estimator_).publish().save(path)
    stronger = "replace-one"

    def change(published):
        published._card["mechanism"]["parameters"]["add_remove"] = False
        published._card["relation"] = stronger
        published.privacy_spent_ = replace(published.privacy_spent_, relation=stronger)

    forge(path, change)
    with pytest.raises(ValueError, match=r"by DP-SGD.*another neighbour"):
        PublishedClassifier.load(path, trusted=TRUSTED)


PURE = {"pure_epsilon": 1.0, "values": None}
#: Values of another kind than a parameter has, also where they change no cost.
ODD_VALUES = [
    ("output", "linear_scale", 1e9),
    ("output", "curvature", True),
    ("output", "learner", "a model without any noise, by DPLogisticRegression"),
    ("output", "learner", None),
    ("output", "method", None),
    ("gaussian", "output_scale", "1.0"),
    ("dpsgd", "expected_batch_size", None),
    ("dpsgd", "expected_batch_size", -1),
    ("dpsgd", "max_grad_norm", "nan"),
    ("dpsgd", "accountant", True),
    ("search", "fit", 1.0),
    ("search", "pure_scores", None),
    ("search", "add_remove", 0),
    ("search", "mean_n_trials", True),
    ("search", "score_scale", {"class": "GNMax", "parameters": {"sigma": 1.0}}),
    ("search", "fits", [PURE | {"pure_epsilon": True}]),
    ("search", "fits", [PURE | {"pure_epsilon": "1"}]),
    ("search", "fits", [PURE | {"values": ["1"] * 385}]),
    ("search", "fits", [PURE | {"values": [True] * 385}]),
    ("search", "fits", 10_001 * [PURE]),
]


@pytest.mark.parametrize(("name", "parameter", "value"), ODD_VALUES)
def test_a_parameter_of_another_kind_is_refused(name, parameter, value, originals):
    fields = deepcopy(originals(name).card["mechanism"])
    rebuilt(fields)
    fields["parameters"][parameter] = value
    with pytest.raises(ValueError, match=rf"{parameter}|epsilon=|curve"):
        rebuilt(fields)
