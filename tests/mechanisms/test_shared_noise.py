"""Tests of noise that several sites draw: its law, its cost, and planted defects."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, norm

from sklearn_pate.mechanisms import GNMax, LNMax, MeanScores, NoisyHistogram
from tests.private import (
    LEAST_VARIANCE,
    OF_SHARED_NOISE,
    ClassCounts,
    MarginalCounts,
    NewtonSteps,
    NoiseSource,
    SharedNoise,
    SharedRelease,
    TwoPartRelease,
    sharing,
)


def source_of_site(n_sites, n_colluding=1):
    """Return a source of noise at one of several sites."""
    with sharing(SharedRelease(n_sites, n_colluding, None, True, None)):
        return NoiseSource()


def law(variance, width):
    """Return the probabilities of discrete Gaussian noise, from -width to width."""
    weights = [
        mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * variance))
        for k in range(-width, width + 1)
    ]
    total = mpmath.fsum(weights)
    return [one / total for one in weights]


def convolved(one, other):
    middle = (len(one) - 1) // 2
    return [
        mpmath.fsum(
            one[j] * other[k - j + middle]
            for j in range(len(one))
            if 0 <= k - j + middle < len(other)
        )
        for k in range(len(one))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("variance", [1, 2, LEAST_VARIANCE])
def test_a_sum_of_discrete_gaussian_noise_is_nearly_discrete_gaussian(variance):
    with mpmath.workdps(60):
        width = 90
        one = law(mpmath.mpf(variance), width)
        total, bound = one, mpmath.mpf(0)
        for n in range(2, 6):
            total = convolved(total, one)
            harmonic = mpmath.mpf(variance) * (n - 1) / n
            bound += 5 * mpmath.exp(-2 * mpmath.pi**2 * harmonic)
            stated = law(mpmath.mpf(n * variance), 400)
            middle = len(stated) // 2
            differences = [
                abs(mpmath.log(total[width + k] / stated[middle + k]))
                for k in range(-20, 21)
            ]
            assert max(differences) <= bound
            # Of two sites, it is no larger than needed by more than a few times.
            assert n > 2 or max(differences) > bound / 10
        if variance == LEAST_VARIANCE:
            assert bound < 2e-21
            assert 2**20 * bound * mpmath.sqrt(2 * mpmath.pi) < OF_SHARED_NOISE


@given(mu=st.floats(0.01, 4), tau=st.floats(1e-4, 0.3), level=st.floats(0.001, 0.999))
def test_factors_on_probabilities_add_to_mu_what_is_proved(mu, tau, level):
    # A test that rejects above x. If all probabilities change by factors of up to
    # e^tau, its error is this at least, and its power this at most.
    x, factor = norm.isf(level), np.exp(tau)
    error = max(1 - factor * norm.cdf(x), norm.sf(x) / factor)
    power = min(factor * norm.sf(x - mu), 1 - norm.cdf(x - mu) / factor)
    larger = mu + np.sqrt(2 * np.pi) * tau
    assert power <= norm.sf(norm.isf(error) - larger) + 1e-12


@pytest.mark.parametrize(
    "mechanism",
    [
        NoisyHistogram(sigma=40.0),
        NewtonSteps(noise_scale=8.0),
        MeanScores(noise_scale=8.0),
        MarginalCounts(sigma=30.0, n_tables=3),
        TwoPartRelease(ClassCounts(noise_scale=30.0), NoisyHistogram(sigma=40.0)),
    ],
)
@pytest.mark.parametrize(("n_sites", "n_colluding"), [(2, 1), (5, 2), (20, 9)])
def test_the_noise_that_counts_costs_what_a_pooled_release_costs(
    mechanism, n_sites, n_colluding
):
    shared = SharedNoise.of(mechanism, n_sites, n_colluding)
    for delta in (1e-9, 1e-5, 1e-2):
        pooled = mechanism.cost(10, 2).epsilon(delta)
        assert (
            0.9999 * pooled < shared.cost(10, 2).epsilon(delta) <= pooled * (1 + 1e-9)
        )
    scales = [
        getattr(one, name)
        for release in (shared, mechanism)
        for one in release.parts
        if one is not None
        for name in one.noise_parameters
    ]
    half = len(scales) // 2
    wider = np.array(scales[:half]) / scales[half:]
    np.testing.assert_allclose(wider**2, n_sites / (n_sites - n_colluding), rtol=1e-4)


def test_noise_of_each_site_has_its_part_of_the_variance():
    drawn = source_of_site(5).discrete_gaussian(100.0, 20_000)
    assert np.std(drawn) == pytest.approx(100 / np.sqrt(5), rel=0.03)
    assert source_of_site(5)._n_sites == 5
    assert NoiseSource()._n_sites == 1


def lower_bound_of_mu(noise, moved, n_samples):
    """Return a mu that a release exceeds, if it is positive, with certainty of 99.9 %.

    Half of the samples chooses the test, as in ``audit_neighbours``.
    """
    zero, one = noise(n_samples), noise(n_samples) + moved
    cut = np.median(np.concatenate([zero[::2], one[::2]]))
    errors = int(np.sum(zero[1::2] > cut)), int(np.sum(one[1::2] <= cut))
    n = n_samples // 2
    first, second = (beta.ppf(0.9995, count + 1, n - count) for count in errors)
    return float(norm.isf(first) - norm.ppf(second))


DEFECTS = {
    "none": lambda draw, n: sum(draw() for _ in range(3)),
    "half the variance at each site": lambda draw, n: sum(
        np.rint(draw() / np.sqrt(2)) for _ in range(3)
    ),
    "one site more leaves its noise out": lambda draw, n: draw() + draw(),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_an_audit_finds_too_little_noise_of_sites(defect):
    # Five sites, two of which tell their noise: that of three is left to the attacker.
    sigma, n_samples = 60.0, 60_000
    shared = SharedNoise(NoisyHistogram(sigma=sigma), 5, 2)
    stated = shared.cost(1, 2).mu
    source = source_of_site(5, 2)

    def noise(n):
        # Two counts of a moved vote; the attacker projects on the difference.
        def draw():
            return source.discrete_gaussian(sigma, (n, 2)) @ [1, -1] / np.sqrt(2)

        return DEFECTS[defect](draw, n)

    # Forty units that move alike have forty times the mu of one.
    found = lower_bound_of_mu(noise, 40 * np.sqrt(2), n_samples)
    assert (found > 40 * stated) == (defect != "none")


@pytest.mark.parametrize(
    ("mechanism", "numbers", "message"),
    [
        (GNMax(sigma=40.0), (3, 1), "use mechanism='histogram'"),
        (LNMax(gamma=0.1), (3, 1), "use mechanism='histogram'"),
        (SharedNoise(NoisyHistogram(sigma=40.0), 3, 1), (3, 1), "use mechanism="),
        (None, (3, 1), "mechanism=None"),
        (NoisyHistogram(sigma=40.0), (1, 1), "n_sites=1"),
        (NoisyHistogram(sigma=40.0), (3, 3), "n_colluding=3"),
        (NoisyHistogram(sigma=40.0), (3, 0), "n_colluding=0"),
        (NoisyHistogram(sigma=4.0), (4, 1), "too little to be drawn by n_sites=4"),
        (NoisyHistogram(), (4, 1), "sigma"),
    ],
)
def test_wrong_releases_over_sites(mechanism, numbers, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SharedNoise(mechanism, *numbers).cost(10, 2)


def test_a_release_that_is_more_than_a_sum_has_no_cost_over_sites():
    class Loud(NoisyHistogram):
        def release(self, counts, noise=None):
            return np.asarray(counts)

    with pytest.raises(ValueError, match="is not a sum with Gaussian noise"):
        SharedNoise(Loud(sigma=40.0), 3, 1).cost(10, 2)
