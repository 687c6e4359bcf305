"""Text for a terminal."""

import math
import textwrap
from collections.abc import Mapping

__all__ = ["WIDTH", "fact_lines", "write_lower_bound"]

#: Letters in a line.
WIDTH = 80


def fact_lines(facts: Mapping[str, str]) -> list[str]:
    """Format facts as wrapped lines, with their names in one column."""
    indent = 2 + max(map(len, facts))
    return [
        line
        for name, fact in facts.items()
        for line in textwrap.wrap(
            f"{name:{indent}}{fact}", WIDTH, subsequent_indent=" " * indent
        )
    ]


def write_lower_bound(epsilon: float) -> str:
    """Format a lower bound of epsilon with three decimals, rounded down."""
    return f"{math.floor(epsilon * 1000) / 1000:.3f}"
