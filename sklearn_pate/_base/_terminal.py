"""Text for a terminal, in lines that a person can read."""

import math
import textwrap
from collections.abc import Mapping

__all__ = ["WIDTH", "fact_lines", "write_lower_bound"]

#: Letters in a line.
WIDTH = 80


def fact_lines(facts: Mapping[str, str]) -> list[str]:
    """Write facts one below the other, their names in a column of their own.

    Parameters
    ----------
    facts : mapping of str to str
        What is said of each name.

    Returns
    -------
    lines : list of str
        Wrapped, without a line break at their ends.
    """
    indent = 2 + max(map(len, facts))
    return [
        line
        for name, fact in facts.items()
        for line in textwrap.wrap(
            f"{name:{indent}}{fact}", WIDTH, subsequent_indent=" " * indent
        )
    ]


def write_lower_bound(epsilon: float) -> str:
    """Write what epsilon is at least with three decimals, never above its value.

    Parameters
    ----------
    epsilon : float
        Not negative.

    Returns
    -------
    text : str
        The lower bound.
    """
    return f"{math.floor(epsilon * 1000) / 1000:.3f}"
