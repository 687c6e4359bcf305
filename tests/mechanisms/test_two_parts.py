"""Releases in two parts: noisy counts, then a mechanism, at one cost."""

from functools import cache

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from sklearn_pate.accounting import DEFAULT_ORDERS
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
from tests.private import (
    MarginalCounts,
    NewtonSteps,
    SampledMechanism,
    TwoPartRelease,
    gdp_epsilon,
)

N_TABLES, SHARE = 5, 0.1
COUNTS = MarginalCounts(n_tables=N_TABLES)


def votes(mechanism, n_queries=40, n_classes=2):
    """Return a calibration of answers, their number, and the number of classes."""

    def prepared(**noise):
        return mechanism.prepared(
            n_teachers=250, n_queries=n_queries, n_classes=n_classes, **noise
        )

    return prepared, n_queries, n_classes


RELEASES = {
    "gnmax of two": votes(GNMax()),
    "gnmax of three": votes(GNMax(), n_classes=3),
    "histogram": votes(NoisyHistogram(), n_classes=3),
    "lnmax": votes(LNMax()),
    "gumbel": votes(GumbelMax()),
    "permute-and-flip": votes(PermuteAndFlip(), n_classes=3),
    "confident": votes(ConfidentGNMax(), n_classes=3),
    "interactive": votes(InteractiveGNMax(), n_classes=3),
    "scores": (MeanScores().prepared, MeanScores.n_steps, 2),
    "newton": (NewtonSteps().prepared, 0, 2),
    "sum": (lambda **noise: NoisySum().prepared(n_parts=3, **noise), 1, 4),
}
GAUSSIAN = ["histogram", "scores", "newton", "sum"]


@cache
def calibrated(release, epsilon, delta, share=SHARE):
    prepared, n_queries, n_classes = RELEASES[release]
    counts = COUNTS.for_share(share, epsilon, delta)
    mechanism = prepared(epsilon=epsilon, delta=delta, before=counts.cost())
    return TwoPartRelease(counts, mechanism), n_queries, n_classes


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [pytest.param(0.5, 1e-6, marks=pytest.mark.thorough), (1.0, 1e-5)],
)
def test_both_parts_together_have_the_epsilon_that_was_asked_for(
    release, epsilon, delta
):
    whole, *numbers = calibrated(release, epsilon, delta)
    assert 0.999 * epsilon < whole.cost(*numbers).epsilon(delta) <= epsilon
    alone = whole.mechanism.cost(*numbers).epsilon(delta)
    assert alone < 0.97 * epsilon


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_curve_is_the_sum_of_both(release):
    whole, *numbers = calibrated(release, 1.0, 1e-5)
    sigma = whole.counts.sigma
    alone = whole.mechanism.cost(*numbers).curve
    np.testing.assert_allclose(
        whole.cost(*numbers).curve.values,
        alone.values + DEFAULT_ORDERS * N_TABLES / sigma**2,
        rtol=1e-12,
    )
    other = np.array([1.5, 7.0])
    assert whole.cost(*numbers, orders=other).curve.orders.tolist() == other.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_profile_agrees_with_the_stated_epsilon(release):
    whole, *numbers = calibrated(release, 1.0, 1e-5)
    profile = whole.cost(*numbers).profile
    stated = whole.cost(*numbers).epsilon(1e-5)
    assert stated <= profile.epsilon_at(1e-5) * (1 + 1e-9) <= 1.001 * stated


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_cost_is_never_above_that_of_the_curve(release):
    whole, *numbers = calibrated(release, 1.0, 1e-5)
    for delta in 1e-3, 1e-6, 1e-12:
        by_curve = whole.cost(*numbers).curve.quiet_epsilon(delta)
        assert whole.cost(*numbers).epsilon(delta) <= by_curve


@pytest.mark.parametrize("release", GAUSSIAN)
def test_squares_of_mu_of_gaussian_parts_add_up(release):
    whole, n_queries, _ = calibrated(release, 1.0, 1e-5)
    parts = [one.cost(n_queries).mu for one in (whole.counts, whole.mechanism)]
    mu = whole.cost(n_queries).mu
    assert mu**2 == pytest.approx(sum(one**2 for one in parts), rel=1e-12)
    options = {"value_discretization_interval": 1e-4}
    first, second = (pld.from_gaussian_mechanism(1 / one, **options) for one in parts)
    composed = first.compose(second).get_epsilon_for_delta(1e-5)
    assert gdp_epsilon(mu, 1e-5) == pytest.approx(composed, rel=1e-3)
    stated = whole.cost(n_queries, 2).epsilon(1e-5)
    assert stated == pytest.approx(gdp_epsilon(mu, 1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_exact_costs_are_below_that_of_the_curve(release):
    whole, *numbers = calibrated(release, 1.0, 1e-5)
    # Orders of checks and answers are bounded less tightly where both are few.
    least = 1.0 if release in ("confident", "interactive") else 1.02
    assert whole.cost(*numbers).curve.quiet_epsilon(1e-5) > least


@pytest.mark.slow
@pytest.mark.parametrize("release", ["gnmax of two", "gumbel", "scores"])
def test_a_larger_share_is_more_noise_on_answers_and_less_on_counts(release):
    wholes = [calibrated(release, 1.0, 1e-5, share)[0] for share in (0.05, 0.1, 0.4)]
    of_counts = [whole.counts.sigma for whole in wholes]
    (name,) = wholes[0].mechanism.noise_parameters
    scale = [getattr(whole.mechanism, name) for whole in wholes]
    of_answers = scale if release != "gumbel" else [1 / one for one in scale]
    assert np.all(np.diff(of_counts) < 0)
    assert np.all(np.diff(of_answers) > 0)


def sampled(rate, epsilon=2.0, delta=1e-5, n_queries=30):
    counts = MarginalCounts(n_tables=N_TABLES, add_remove=True)
    counts = counts.for_share(SHARE, epsilon, delta)
    mechanism = SampledMechanism(GNMax(), rate).prepared(
        n_queries=n_queries, epsilon=epsilon, delta=delta, before=counts.cost()
    )
    return TwoPartRelease(counts, mechanism)


@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-5)])
def test_answers_on_samples_and_counts_have_the_epsilon_that_was_asked_for(
    rate, epsilon, delta
):
    whole = sampled(rate, epsilon, delta)
    assert 0.999 * epsilon < whole.cost(30, 2).epsilon(delta) <= epsilon
    # A unit that is added or removed is in one cell of each table.
    rest = whole.cost(30, 2).curve.values - whole.mechanism.cost(30, 2).curve.values
    np.testing.assert_allclose(
        rest, DEFAULT_ORDERS * N_TABLES / (2 * whole.counts.sigma**2), rtol=1e-6
    )


@pytest.mark.parametrize("unit", ["row", "group"])
def test_both_parts_have_one_relation(unit):
    assert sampled(0.1).relation(unit) == "add-remove"
    whole = TwoPartRelease(MarginalCounts(5.0), GNMax(5.0))
    assert whole.relation(unit) == GNMax(5.0).relation(unit)


def test_parts_with_different_relations_are_refused():
    mechanisms = GNMax(5.0), SampledMechanism(GNMax(5.0), 0.1)
    for mechanism, add_remove in zip(mechanisms, (True, False), strict=True):
        whole = TwoPartRelease(MarginalCounts(5.0, add_remove=add_remove), mechanism)
        with pytest.raises(ValueError, match="do not add up"):
            whole.cost(10, 2)


class Twice(MarginalCounts):
    """Releases all counts twice."""

    def _curve(self, *args):
        return 2 * super()._curve(*args)


class HistogramTwice(NoisyHistogram):
    """Releases all histograms twice."""

    def _cost(self, *args):
        return 2 * super()._cost(*args)


class AnswersTwice(GNMax):
    """Answers twice."""

    def _cost(self, *args):
        return 2 * super()._cost(*args)


@pytest.mark.parametrize(
    ("counts", "mechanism"),
    [
        (Twice(30.0), GNMax(40.0)),
        (Twice(30.0), NoisyHistogram(40.0)),
        (MarginalCounts(30.0), HistogramTwice(40.0)),
        (MarginalCounts(30.0), AnswersTwice(40.0)),
    ],
)
def test_no_exact_cost_is_stated_for_a_subclass_of_either_part(counts, mechanism):
    whole = TwoPartRelease(counts, mechanism)
    assert whole.cost(40, 2).exact is None
    by_curve = whole.cost(40, 2).curve.quiet_epsilon(1e-5)
    assert whole.cost(40, 2).epsilon(1e-5) == by_curve


def test_without_counts_a_release_has_one_part():
    mechanism = GNMax(40.0)
    assert mechanism.parts == (None, mechanism)


@pytest.mark.parametrize("mechanism", [GumbelMax(), PermuteAndFlip()])
def test_a_small_epsilon_is_calibrated_and_a_smaller_one_has_its_error(mechanism):
    prepared, *numbers = votes(mechanism, n_queries=2000)
    ready = prepared(epsilon=1e-3)
    assert 0.999e-3 < ready.cost(*numbers).epsilon(1e-5) <= 1e-3
    with pytest.raises(ValueError, match="epsilon=1e-05 cannot be reached"):
        prepared(epsilon=1e-5)


@pytest.mark.parametrize("release", ["gnmax of two", "histogram", "gumbel"])
def test_counts_whose_renyi_cost_is_all_of_epsilon_are_refused(release):
    with pytest.raises(ValueError, match="is used up by the noisy counts alone"):
        calibrated(release, 1.0, 1e-5, share=0.95)


@pytest.mark.parametrize("release", ["scores", "newton", "sum"])
def test_functions_and_sums_get_all_that_a_large_share_leaves(release):
    whole, *numbers = calibrated(release, 1.0, 1e-5, share=0.95)
    assert 0.999 < whole.cost(*numbers).epsilon(1e-5) <= 1


def test_counts_that_cost_more_than_all_are_refused_by_a_sum():
    with pytest.raises(ValueError, match="is used up by the noisy counts alone"):
        NoisySum().prepared(
            n_parts=3, epsilon=1.0, before=MarginalCounts(3.0, n_tables=5).cost()
        )


def test_the_line_of_a_statement_names_both_parts():
    whole = TwoPartRelease(MarginalCounts(30.0, n_tables=2), GNMax(40.0))
    assert whole.in_one_line() == (
        "TwoPartRelease(counts=MarginalCounts(n_tables=2, sigma=30.0), "
        "mechanism=GNMax(sigma=40.0))"
    )
    assert whole.released == "answers"


@pytest.mark.parametrize(
    "parts",
    [(MarginalCounts(), GNMax(40.0)), (MarginalCounts(30.0), GNMax())],
)
def test_noise_that_is_not_set_is_found_in_both_parts(parts):
    with pytest.raises(ValueError, match="sigma=None"):
        TwoPartRelease(*parts)._check_ready()
