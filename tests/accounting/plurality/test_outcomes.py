import mpmath
import numpy as np
import pytest

from tests.accounting.oracles import exact_law
from tests.private import (
    GaussianPlurality,
    GumbelPlurality,
    LaplacePlurality,
    PermuteAndFlipPlurality,
)

PLURALITIES = {
    "gaussian": GaussianPlurality,
    "laplace": LaplacePlurality,
    "gumbel": GumbelPlurality,
    "flip": PermuteAndFlipPlurality,
}
# Sums have points enough for hundreds of classes; for a thousand, near enough.
MARGIN_OF_MANY = 1e-6
by_kind = pytest.mark.parametrize("kind", PLURALITIES)


def log_law(kind, scale, counts):
    """ln of each class's probability, as the package has it for grouped counts."""
    values, group, sizes = np.unique(counts, return_inverse=True, return_counts=True)
    log_p = PLURALITIES[kind](scale).log_probabilities(
        values[None].astype(float), sizes[None].astype(float)
    )
    return log_p[0][group]


def relative_errors(kind, scale, counts):
    """By how much each probability is off, for those above 1e-300."""
    found = log_law(kind, scale, counts)
    exact = np.array([float(p.ln()) for p in exact_law(kind, scale, counts)])
    return np.abs(np.expm1(found - exact))[exact > -690]


def random_votes(kind, rng):
    """A scale and a vector, with outcomes of probability down to 1e-300."""
    wide = rng.random() < 0.3
    if kind == "gaussian":
        scale = float(np.exp(rng.uniform(np.log(0.3), np.log(3 if wide else 9))))
        span = rng.uniform(0, 50) * scale
    else:
        scale = float(np.exp(rng.uniform(np.log(0.3), np.log(3))))
        span = rng.uniform(0, 680 if rng.random() < 0.3 else 60) / scale
    counts = rng.integers(0, int(span) + 2, size=3 if wide else rng.integers(2, 6))
    if wide:
        counts = rng.permutation(np.repeat(counts, rng.integers(1, 7, size=3)))
    return scale, [int(n) for n in counts]


@pytest.mark.slow
@by_kind
def test_every_probability_is_right_to_nine_digits(kind):
    rng = np.random.default_rng(11)
    deepest = 0
    for _ in range(75):
        scale, counts = random_votes(kind, rng)
        assert np.max(relative_errors(kind, scale, counts)) < 1e-9, (scale, counts)
        deepest = min(deepest, np.min(log_law(kind, scale, counts)))
    assert deepest < np.log(1e-200)  # or the cases would be too easy


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [20.0, 63.9, 64.0, 100.0, 200.0])
@pytest.mark.parametrize(
    "counts", [[250, 0], [120, 100, 30], [90, 90, 70, 0], [2500, 0, 10]]
)
def test_much_noise_on_many_votes_is_right_too(sigma, counts):
    assert np.max(relative_errors("gaussian", sigma, counts)) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.02, 0.05])
def test_wide_laplace_noise_is_right_too(gamma):
    for counts in ([250, 0], [120, 100, 30], [90, 90, 70, 0]):
        assert np.max(relative_errors("laplace", gamma, counts)) < 1e-9


@by_kind
@pytest.mark.parametrize(
    ("scale", "n_classes"),
    [(0.1, 2), (8.0, 2), (1.0, 3), (0.1, 17), (8.0, 17), (1.0, 128), (1.0, 1000)],
)
def test_classes_without_votes_are_equally_likely(kind, scale, n_classes):
    chance = np.exp(log_law(kind, scale, [0] * n_classes))
    margin = 1e-11 if n_classes <= 200 else MARGIN_OF_MANY
    np.testing.assert_allclose(chance, 1 / n_classes, rtol=margin)


@by_kind
@pytest.mark.parametrize("n_classes", [2, 20, 200])
def test_probabilities_add_up_to_one(kind, n_classes):
    rng = np.random.default_rng(n_classes)
    for scale in (0.2, 2.0) if kind != "gaussian" else (0.5, 5.0, 80.0):
        counts = rng.integers(0, 12, size=n_classes)
        total = np.sum(np.exp(log_law(kind, scale, counts)))
        assert total == pytest.approx(1, rel=1e-11)


@by_kind
def test_a_law_does_not_change_if_all_counts_grow_equally(kind):
    counts = np.array([3, 9, 5, 5])
    np.testing.assert_allclose(
        log_law(kind, 0.8, counts), log_law(kind, 0.8, counts + 1000), rtol=1e-12
    )


def test_permute_and_flip_is_right_for_hundreds_of_classes():
    counts, c = [7] * 150 + [2] * 150, 0.3
    with mpmath.workdps(30):
        w = mpmath.exp(-5 * mpmath.mpf(c))
        behind = mpmath.quad(
            lambda u: (1 - u) ** 150 * (1 - w * u) ** 149, [0, 0.02, 0.1, 0.3, 1]
        )
        expected = float(mpmath.log(w * behind))
    assert log_law("flip", c, counts)[-1] == pytest.approx(expected, rel=1e-11, abs=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scale"), [("gaussian", 3.0), ("laplace", 0.4), ("gumbel", 0.4)]
)
def test_noise_drawn_at_random_follows_the_law(kind, scale):
    """Compare winners of a million draws with the law, by noise of another package."""
    rng = np.random.default_rng(0)
    counts, n_draws = np.array([5, 3, 3, 0]), 1_000_000
    shape = (n_draws, counts.size)
    if kind == "gaussian":
        support = np.arange(-40, 41)
        mass = np.exp(-(support**2) / (2 * scale**2))
        noise = rng.choice(support, size=shape, p=mass / mass.sum())
    elif kind == "laplace":
        ratio = 1 - np.exp(-scale)
        noise = rng.geometric(ratio, size=shape) - rng.geometric(ratio, size=shape)
    else:
        noise = rng.gumbel(scale=1 / scale, size=shape)
    winner = np.argmax(counts + noise + 0.5 * rng.random(shape), axis=1)
    if kind == "gumbel":  # continuous, without ties
        winner = np.argmax(counts + noise, axis=1)
    drawn = np.bincount(winner, minlength=counts.size) / n_draws
    law = np.exp(log_law(kind, scale, counts))
    assert np.all(np.abs(drawn - law) < 5 * np.sqrt(law / n_draws))
