"""What (epsilon, delta) says about an attacker, in numbers that are never too small."""

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

# Floats are exact numbers here, and exponentials have as many digits as it takes for a
# rounded figure to be on the right side. Tiny ones become 0, which is safe below.
_EXACT = Context(prec=60)


def guesses_at_most(epsilon: float, delta: float) -> Decimal:
    """Bound how often an attacker guesses right, where a fair coin is right half of it.

    Parameters
    ----------
    epsilon : float
        Finite, not negative.

    delta : float
        In [0, 1].

    Returns
    -------
    probability : Decimal
        Between 1/2 and 1.

    Notes
    -----
    One of two neighbouring data sets is drawn by a fair coin, and whoever sees what is
    released names one of them. With false alarms a and missed ones b,
    ``a + e^epsilon b >= 1 - delta`` and ``e^epsilon a + b >= 1 - delta`` (Kairouz, Oh,
    Viswanath 2015, "The composition theorem for differential privacy"). The sum of both
    bounds ``1 - (a + b) / 2`` by
    ``(e^epsilon + delta) / (e^epsilon + 1)``.
    """
    with localcontext(_EXACT):
        shrunk = (-Decimal(epsilon)).exp()
        return (1 + Decimal(delta) * shrunk) / (1 + shrunk)


def detections_at_most(epsilon: float, delta: float, false_alarms: Decimal) -> Decimal:
    """Bound how often the truth is detected, at a rate of false alarms.

    Parameters
    ----------
    epsilon : float
        Finite, not negative.

    delta : float
        In [0, 1].

    false_alarms : Decimal
        How often a false claim may be taken for true, in [0, 1].

    Returns
    -------
    probability : Decimal
        That a true claim is recognised, between `false_alarms` and 1.

    Notes
    -----
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
    """Weaken a guarantee about one unit to one about several of them together.

    Parameters
    ----------
    epsilon : float
        Finite, not negative.

    delta : float
        In [0, 1].

    n_units : int
        How many rows, groups or parties.

    Returns
    -------
    epsilon : Decimal
        Of all of them.

    delta : Decimal
        At most 1, where nothing is promised.

    Notes
    -----
    ``(k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1))``: Vadhan (2017), "The
    complexity of differential privacy", Lemma 2.2, whose proof sums up
    ``delta e^(i epsilon)`` over i < k.
    """
    with localcontext(_EXACT):
        total = Decimal(delta)
        # Beyond a thousand, exponentials are huge and delta is 1, or there was none.
        growth = min(Decimal(epsilon), Decimal(THOUSAND)).exp()
        for _ in range(n_units - 1):
            total = min(total * growth + Decimal(delta), Decimal(1))
        return n_units * Decimal(epsilon), total


def wrong_once_in(epsilon: float, delta: float) -> int | None:
    """Count the guesses of which at least one is wrong, on average.

    Parameters
    ----------
    epsilon : float
        Finite, not negative.

    delta : float
        In [0, 1].

    Returns
    -------
    n_guesses : int or None
        Rounded up. None from a million on, where a number means nothing any more.
    """
    with localcontext(_EXACT):
        wrong = 1 - guesses_at_most(epsilon, delta)
        return None if wrong <= Decimal("1e-6") else of_many(1 / wrong, 1)


def of_many(probability: Decimal, of: int) -> int:
    """Say a probability as a number out of many, rounded up.

    Parameters
    ----------
    probability : Decimal
        Not negative.

    of : int
        Out of how many.

    Returns
    -------
    number : int
        Never less than its share.
    """
    with localcontext(_EXACT):
        return int((probability * of).to_integral_value(rounding=ROUND_CEILING))


def round_up(value: Decimal | float, places: int) -> float:
    """Round up to decimal places, as statements round epsilon.

    Parameters
    ----------
    value : Decimal or float
        Not negative.

    places : int
        How many.

    Returns
    -------
    rounded : float
        Not below the value, but for one billionth of the last place: 1.0 plus what
        floating-point arithmetic added to it is 1.0.
    """
    with localcontext(_EXACT):
        unit = Decimal(10) ** -places
        scaled = max(Decimal(value) / unit - Decimal("1e-9"), Decimal(0))
        return float(scaled.to_integral_value(rounding=ROUND_CEILING) * unit)
