"""Text for a terminal, in lines that a person can read."""

import textwrap
from collections.abc import Mapping

__all__ = ["WIDTH", "fact_lines"]

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
