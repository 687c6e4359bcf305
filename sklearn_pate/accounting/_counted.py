"""Counts in sentences."""

import re

__all__ = ["counted"]


def counted(number: float | None, noun: str) -> str:
    """Write a number and its noun: "1 query", "2 queries", or "no query" for None.

    `noun` is singular, and may have adjectives.
    """
    if number is None or number == 1:
        return f"{'no' if number is None else 1} {noun}"
    if re.search("[^aeiou]y$", noun):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if re.search('(s|x|ch|sh)$', noun) else 's'}"
