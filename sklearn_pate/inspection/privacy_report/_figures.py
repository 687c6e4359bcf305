"""Figures of a privacy report, rounded up."""

from decimal import ROUND_CEILING, Context, Decimal, localcontext

__all__ = ["THOUSAND", "of_thousand", "round_up", "two_digits_up", "wrong_once_in"]

THOUSAND = 1000

# 60 digits, so that figures are rounded up correctly.
_EXACT = Context(prec=60)


def of_thousand(probability: float) -> int:
    """Express a probability as a number of a thousand cases, rounded up."""
    return int(round_up(THOUSAND * probability, 0))


def wrong_once_in(right: float) -> int | None:
    """Compute the number of guesses per wrong guess, None above one million."""
    wrong = 1 - right
    return None if wrong <= 1e-6 else int(round_up(1 / wrong, 0))


def two_digits_up(delta: float) -> float:
    """Round a delta up to two digits."""
    if delta == 0:
        return 0.0
    places = 1 - Decimal(f"{delta:.1e}").adjusted()
    return min(round_up(delta, places), 1.0)


def round_up(value: float, places: int) -> float:
    """Round up to decimal places, as privacy statements round epsilon.

    An excess of at most one billionth of the last place is dropped: floating-point
    arithmetic may have added it.
    """
    with localcontext(_EXACT):
        unit = Decimal(10) ** -places
        scaled = max(Decimal(value) / unit - Decimal("1e-9"), Decimal(0))
        return float(scaled.to_integral_value(rounding=ROUND_CEILING) * unit)
