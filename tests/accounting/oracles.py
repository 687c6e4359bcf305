"""Laws, neighbours and divergences, number by number, with 50 digits.

In `decimal`: sums and products take a tenth of their time in mpmath.
"""

from decimal import Decimal, localcontext
from math import ceil

DIGITS = 50
# Noise beyond the counts is summed up to these numbers of standard deviations and of
# units of 1 / gamma: the rest is below 1e-30 of any sum.
_GAUSSIAN_REACH = 12
_LAPLACE_REACH = 70


def exact_law(kind, scale, counts):
    """Probabilities that each class wins the noisy vote, as Decimals."""
    with localcontext(prec=DIGITS):
        scale = Decimal(scale)
        if kind == "gumbel":
            weights = [(scale * (n - max(counts))).exp() for n in counts]
            return [w / sum(weights) for w in weights]
        if kind == "flip":
            weights = [(scale * (n - max(counts))).exp() for n in counts]
            factors = [(Decimal(1), -w) for w in weights]
            return [w * _integral(factors, j) for j, w in enumerate(weights)]
        return _lattice_law(kind, scale, counts)


def _lattice_law(kind, scale, counts):
    """Sum over the winner's noisy count; ties are a polynomial of random priority."""
    span = max(counts) - min(counts)
    if kind == "gaussian":
        rest = ceil(_GAUSSIAN_REACH * scale) + 2
        start, stop = (min(counts) + max(counts)) // 2 - rest, max(counts) + rest
    else:
        rest = ceil(_LAPLACE_REACH / scale) + 2
        start, stop = min(counts) - rest, max(counts) + rest
    mass, cdf = noise_table(kind, scale, span + rest + 2)
    centre = len(cdf) // 2
    # Classes with equal counts are equally likely: one of them stands for all.
    standing = {n: counts.index(n) for n in set(counts)}
    totals = dict.fromkeys(standing, Decimal(0))
    for t in range(start, stop + 1):
        factors = [(cdf[t - 1 - n + centre], mass[t - n + centre]) for n in counts]
        for n, j in standing.items():
            totals[n] += factors[j][1] * _integral(factors, j)
    return [totals[n] for n in counts]


def noise_table(kind, scale, reach):
    """Pr[Z = z] and Pr[Z <= z] for z from -reach - 1 to reach + 1."""
    with localcontext(prec=DIGITS):
        scale = Decimal(scale)
        if kind == "gaussian":
            far = reach + ceil(16 * scale) + 1
            ratio = (-1 / scale**2).exp()
            weights, weight = [Decimal(1)], Decimal(1)
            step = ratio.sqrt()
            for _ in range(far):
                weight *= step
                weights.append(weight)
                step *= ratio
        else:
            far = reach + ceil(120 / scale) + 1
            weights, weight, step = [Decimal(1)], Decimal(1), (-scale).exp()
            for _ in range(far):
                weight *= step
                weights.append(weight)
        total = 2 * sum(weights) - 1
        both = [w / total for w in (*weights[:0:-1], *weights)]
        cdf, below = [], Decimal(0)
        for p in both:
            below += p
            cdf.append(below)
        kept = slice(far - reach - 1, far + reach + 2)
        return both[kept], cdf[kept]


def _integral(factors, left_out):
    """Integrate the product of a + b u over [0, 1], without one factor."""
    polynomial = [Decimal(1)]
    for k, (a, b) in enumerate(factors):
        if k != left_out:
            lower = [a * c for c in polynomial] + [Decimal(0)]
            polynomial = [
                low + b * c
                for low, c in zip(lower, [Decimal(0), *polynomial], strict=True)
            ]
    return sum(c / (i + 1) for i, c in enumerate(polynomial))


def exact_divergence(p, q, order):
    """D_a(p || q)."""
    with localcontext(prec=DIGITS):
        order = Decimal(order)
        total = sum(a * (a / b) ** (order - 1) for a, b in zip(p, q, strict=True))
        return total.ln() / (order - 1)


def neighbours(counts):
    """All vectors that one teacher can make of these, by moving or abstaining."""
    parties = [*range(len(counts)), None]
    found = set()
    for loser in parties:
        for gainer in parties:
            moved = list(counts)
            if loser is not None:
                moved[loser] -= 1
            if gainer is not None:
                moved[gainer] += 1
            if loser != gainer and min(moved) >= 0:
                found.add(tuple(moved))
    return sorted(found)


def distinct_neighbours(counts):
    """The same, once for classes that can be exchanged without changing the counts."""
    representatives = {}
    for moved in neighbours(counts):
        representatives[tuple(sorted(zip(counts, moved, strict=True)))] = moved
    return list(representatives.values())


def exact_local_costs(kind, scale, counts, orders):
    """The largest divergence from and to a neighbour at each order, as Decimals."""
    here = exact_law(kind, scale, counts)
    laws = [exact_law(kind, scale, moved) for moved in distinct_neighbours(counts)]
    return [
        max(
            max(exact_divergence(here, law, order), exact_divergence(law, here, order))
            for law in laws
        )
        for order in orders
    ]
