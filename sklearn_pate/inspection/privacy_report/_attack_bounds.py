"""Upper bounds on the success of attackers, as functions of epsilon and delta."""

from decimal import ROUND_CEILING, Context, Decimal, localcontext

__all__ = [
    "THOUSAND",
    "detections_at_most",
    "guesses_at_most",
    "of_many",
    "of_several",
    "round_up",
    "wrong_once_in",
]

THOUSAND = 1000

# 60 digits, so that figures are rounded up correctly. Tiny exponentials become 0, which
# keeps the bounds below valid.
_EXACT = Context(prec=60)


def guesses_at_most(epsilon: float | Decimal, delta: float | Decimal) -> Decimal:
    """Bound the probability that an attacker identifies one of two data sets.

    A fair coin draws one of two neighbouring data sets, and an attacker with the
    release names one of them. With false alarm rate a and miss rate b,
    ``a + e^epsilon b >= 1 - delta`` and ``e^epsilon a + b >= 1 - delta`` (Kairouz, Oh,
    Viswanath 2015, "The composition theorem for differential privacy"). The sum of both
    bounds ``1 - (a + b) / 2`` by ``(e^epsilon + delta) / (e^epsilon + 1)``.
    """
    with localcontext(_EXACT):
        shrunk = (-Decimal(epsilon)).exp()
        return (1 + Decimal(delta) * shrunk) / (1 + shrunk)


def detections_at_most(epsilon: float, delta: float, false_alarms: Decimal) -> Decimal:
    """Bound the probability that a true claim is detected, at a false alarm rate a.

    ``min(1, e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a))``: Wasserman and Zhou
    (2010), "A statistical framework for differential privacy"; with delta, Kairouz, Oh,
    Viswanath (2015).
    """
    with localcontext(_EXACT):
        shrunk, missing = (-Decimal(epsilon)).exp(), Decimal(delta)
        bounds = [Decimal(1), 1 - shrunk * (1 - missing - false_alarms)]
        if shrunk > 0:
            bounds.append(false_alarms / shrunk + missing)
        return min(bounds)


def of_several(epsilon: float, delta: float, n_units: int) -> tuple[Decimal, Decimal]:
    """Compute epsilon and delta for several units together (group privacy).

    ``(k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1))``: Vadhan (2017), "The
    complexity of differential privacy", Lemma 2.2, whose proof sums up
    ``delta e^(i epsilon)`` over i < k. There is no guarantee at delta 1.
    """
    with localcontext(_EXACT):
        total = Decimal(delta)
        # Above epsilon=1000, the total is 1, or delta is 0; exp() must not overflow.
        growth = min(Decimal(epsilon), Decimal(THOUSAND)).exp()
        for _ in range(n_units - 1):
            total = min(total * growth + Decimal(delta), Decimal(1))
        return n_units * Decimal(epsilon), total


def wrong_once_in(epsilon: float, delta: float) -> int | None:
    """Compute the number of guesses per wrong guess, None above one million."""
    with localcontext(_EXACT):
        wrong = 1 - guesses_at_most(epsilon, delta)
        return None if wrong <= Decimal("1e-6") else of_many(1 / wrong, 1)


def of_many(probability: Decimal, of: int) -> int:
    """Express a probability as a number out of `of` cases, rounded up."""
    with localcontext(_EXACT):
        return int((probability * of).to_integral_value(rounding=ROUND_CEILING))


def round_up(value: Decimal | float, places: int) -> float:
    """Round up to decimal places, as privacy statements round epsilon.

    An excess of at most one billionth of the last place is dropped: floating-point
    arithmetic may have added it.
    """
    with localcontext(_EXACT):
        unit = Decimal(10) ** -places
        scaled = max(Decimal(value) / unit - Decimal("1e-9"), Decimal(0))
        return float(scaled.to_integral_value(rounding=ROUND_CEILING) * unit)
