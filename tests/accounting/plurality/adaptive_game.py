"""Adversaries that choose votes in view of earlier answers, without the package.

A test is a pair (p, q): the probabilities of answer 0 under two neighbouring data sets.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from tests.accounting.oracles import noise_table

# Noise beyond this many standard deviations has no mass in float64.
REACH = 12


@lru_cache(maxsize=64)
def _difference_law(sigma):
    """Pr[Z - Z' = z] and Pr[Z - Z' >= z], and where z = 0 is."""
    mass, _ = noise_table("gaussian", sigma, int(REACH * sigma))
    mass = np.array(mass, dtype=float)
    difference = np.convolve(mass, mass)
    return difference, np.cumsum(difference[::-1])[::-1], len(mass) - 1


def answer_law(sigma, gaps):
    """Pr[answer 0] of two noisy counts at each whole gap, ties by a fair coin."""
    difference, upper, centre = _difference_law(sigma)
    at = centre - np.asarray(gaps)
    return upper[at] - difference[at] / 2


def vote_pairs(sigma, gaps):
    """Tests of all neighbours: a vote moves (gap - 2), or is withdrawn (gap - 1).

    A vote that moves in the other direction, or that is added, is the same test with
    the names of classes, or of data sets, exchanged: gaps of both signs cover them.
    """
    gaps = np.asarray(gaps)
    before = np.tile(answer_law(sigma, gaps), 2)
    after = np.concatenate([answer_law(sigma, gaps - 2), answer_law(sigma, gaps - 1)])
    return before, after


def with_mirror_images(p, q):
    """Add each test with its data sets exchanged."""
    return np.concatenate([p, 1 - q]), np.concatenate([q, 1 - p])


def best_delta(p, q, n_answers, epsilon):
    """Largest delta of any adversary that chooses among tests after every history."""
    weight = np.stack([p, 1 - p], 1)
    return best_delta_of_laws(weight, np.stack([q, 1 - q], 1), n_answers, epsilon)


def best_delta_of_laws(weight, other, n_answers, epsilon):
    """The same for tests of more outcomes, by their laws under both data sets."""
    shift = np.log(other / weight)
    # The state is epsilon less the loss so far, one for each history.
    states = np.array([float(epsilon)])
    for _ in range(n_answers):
        states = (states[:, np.newaxis, np.newaxis] + shift).ravel()
    values = np.maximum(-np.expm1(states), 0)
    for _ in range(n_answers):
        values = (values.reshape(-1, *weight.shape) * weight).sum(-1).max(-1)
    return float(values[0])


def plurality_law(sigma, counts):
    """Law of the plurality of noisy counts, ties broken at random."""
    mass, cdf = (np.array(x, dtype=float) for x in _noise(sigma))
    reach = len(mass) // 2
    low, high = min(counts) - reach, max(counts) + reach
    points = np.arange(low, high + 1)

    def at(table, count, beyond):
        where = points - count + reach
        inside = np.clip(where, 0, len(mass) - 1)
        values = np.where(where < 0, 0.0, table[inside])
        return np.where(where >= len(mass), beyond, values)

    of_mass = [at(mass, count, 0.0) for count in counts]
    below = [at(cdf, count, 1.0) - m for count, m in zip(counts, of_mass, strict=True)]
    # A tie of i classes is won by each of them with probability 1 / i: integrate over
    # a uniform number that raises all counts.
    at_u, weight = np.polynomial.legendre.leggauss(len(counts))
    law = np.zeros(len(counts))
    for u, w in zip((at_u + 1) / 2, weight / 2, strict=True):
        for j, own in enumerate(of_mass):
            others = [
                b + u * m
                for i, (b, m) in enumerate(zip(below, of_mass, strict=True))
                if i != j
            ]
            law[j] += w * np.sum(own * np.prod(others, axis=0))
    return law


def threshold_law(sigma, x, y):
    """Law of (c wins, d wins, neither) by their leads over a fixed count.

    c wins ties with d, and both win ties with the count, as the largest of very many
    other noisy counts is nearly fixed.
    """
    mass, cdf = _noise(sigma)
    reach = len(mass) // 2
    points = np.arange(max(x, y, 0) + reach)

    def at(table, z, beyond):
        inside = np.clip(z + reach, 0, len(table) - 1)
        values = np.where(z < -reach, 0.0, table[inside])
        return np.where(z > reach, beyond, values)

    c_wins = np.sum(at(mass, points - x, 0.0) * at(cdf, points - y, 1.0))
    d_wins = np.sum(at(mass, points - y, 0.0) * at(cdf, points - 1 - x, 1.0))
    neither = at(cdf, np.array(-1 - x), 1.0) * at(cdf, np.array(-1 - y), 1.0)
    return np.array([c_wins, d_wins, neither])


@lru_cache(maxsize=64)
def _noise(sigma):
    mass, _ = noise_table("gaussian", sigma, int(REACH * sigma))
    mass = np.array(mass, dtype=float)
    return mass, np.cumsum(mass)


def extended(values, reach, h):
    """W on the grid u = 0, h, ..., continued by symmetry below 0, and by 0 beyond."""
    values = np.append(values, np.zeros(reach))
    ratio = np.exp(-h * np.arange(reach, 0, -1))
    return np.append(1 - ratio * (1 - values[reach:0:-1]), values)


def recursion(p, q, h, n_points, n_answers, rounding="chord"):
    """Deltas on the grid after some answers, by the recursion over tests (p, q).

    Between points it takes the chord in e^u, which is an upper bound, or the next
    point, which is none ("next").
    """
    weight = np.stack([p, 1 - p], 1)
    shift = np.log(np.stack([q / p, (1 - q) / (1 - p)], 1)) / h
    whole = np.floor(np.round(shift, 9)).astype(int)
    share = np.maximum(np.expm1((shift - whole) * h) / np.expm1(h), 0)
    if rounding == "next":
        share = np.ceil(share - 1e-9)
    reach = np.abs(whole).max() + 1
    return _backward(
        np.concatenate([weight * (1 - share), weight * share], 1).tolist(),
        np.concatenate([whole, whole + 1], 1).tolist(),
        (h, n_points, n_answers, reach),
    )


def _backward(weights, steps, size):
    """Take the best of all tests at each point of the grid, answer by answer."""
    h, n_points, n_answers, reach = size
    values = np.zeros(n_points)
    for _ in range(n_answers):
        wide = extended(values, reach, h)
        values = np.zeros(n_points)
        for of_test, moves in zip(weights, steps, strict=True):
            np.maximum(values, _value(wide, of_test, moves, reach), out=values)
    return values


def _value(wide, weights, steps, reach):
    """Value of one test at all points of the grid."""
    n_points = len(wide) - 2 * reach
    total = np.zeros(n_points)
    for weight, step in zip(weights, steps, strict=True):
        if weight:
            total += weight * wide[reach + step : reach + step + n_points]
    return total


def best_tests(p, q, h, n_points, n_answers):
    """Index of a nearly best test by answers left (from 1) and point of the grid."""
    weights = np.stack([p, 1 - p], 1)
    steps = np.round(np.log(np.stack([q / p, (1 - q) / (1 - p)], 1)) / h).astype(int)
    reach = np.abs(steps).max()
    values, best = np.zeros(n_points), []
    for _ in range(n_answers):
        wide = extended(values, reach, h)
        of_tests = [
            _value(wide, weight, step, reach)
            for weight, step in zip(weights, steps, strict=True)
        ]
        values = np.max(of_tests, axis=0)
        best.append(np.argmax(of_tests, axis=0))
    return np.array(best)


def gaussian_tests(mu, thresholds):
    """Tests of N(mu / 2, 1) against N(-mu / 2, 1) by thresholds."""
    return ndtr(thresholds + mu / 2), ndtr(thresholds - mu / 2)


def lattice_moves(mu, steps_of_tie=48):
    """Tests inside the Gaussian ones whose log-ratios are whole multiples of h.

    Returns the changes of the state after answer 0 and after answer 1, in steps of h,
    the probability of answer 0, and h. A tie is among them.
    """
    h = np.log(ndtr(mu / 2) / ndtr(-mu / 2)) / steps_of_tie
    down, up = np.meshgrid(*2 * [np.arange(1, 4 * steps_of_tie)], indexing="ij")
    q = np.expm1(up * h) / np.expm1((down + up) * h)
    p = np.exp(down * h) * q
    inside = p <= ndtr(ndtri(q) + mu) * (1 + 1e-13)
    # The largest step up for each step down, and the other way round.
    largest = inside & ~np.pad(inside, ((0, 0), (0, 1)))[:, 1:]
    largest |= inside & ~np.pad(inside, ((0, 1), (0, 0)))[1:]
    return np.stack([-down[largest], up[largest]], 1), p[largest], h


def lattice_deltas(mu, n_answers, top):
    """Certified lower bounds of delta on a grid of epsilon up to a top."""
    steps, p, h = lattice_moves(mu)
    n_points = int(np.ceil(top / h))
    weights = np.stack([p, 1 - p], 1).tolist()
    size = (h, n_points, n_answers, np.abs(steps).max())
    return h * np.arange(n_points), _backward(weights, steps.tolist(), size)
