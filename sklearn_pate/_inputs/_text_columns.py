"""Columns of text and objects that hold numbers, dates, ids or lists."""

import re
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_pate._inputs._containers import column_names, column_of
from sklearn_pate._inputs._odd_values import (
    columns_of,
    is_a,
    is_missing_or_nan,
    kind_of,
    to_text,
)
from sklearn_pate.exceptions import PublicDataWarning, warn_user

# Fewer values of a column are categories, and fewer whole numbers codes.
_MANY, _MANY_CODES, _FEW, _FEW_CODES = 20, 30, 2, 10
# Share of the rows of a column that decides for it.
_NEARLY_ALL = 0.9
# Correlation of the log frequencies of neighbours, and their median difference.
_SMOOTH, _ERRATIC = 0.7, 0.5
# Values that hold several numbers.
_NESTED = (list, tuple, dict, set, frozenset, complex, np.complexfloating, np.ndarray)
# A number: signs or a currency, digits in groups of three or not, an exponent, a unit.
_NUMBER = re.compile(
    r"(?P<sign>[^\w.,]*)(?=[.,]?\d)"
    r"(?P<digits>(?P<whole>\d{1,3}(?:[.,'\u2019 \xa0\u202f]\d{3})+|\d*)"
    r"(?:[.,]\d*)?(?:[eE][-+]?\d+)?)(?P<unit>\D*)"
)
# What no code has: a fraction but zero, groups of digits, an exponent, a unit.
_OF_AMOUNT = re.compile(
    r".*(?:[.,]\d*[1-9]|\d[^\d.,]\d|[eE]\d|[^\W\d_]|%|[$\u20ac\xa3\xa5])"
)
_YEAR = r"(?:19|20)\d\d"
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|\d{1,2}[-/]\d{1,2}[-/]\d\d|\d\d\.\d\d\.\d\d"
    rf"|{_YEAR}[-/](?:0\d|1[0-2])|{_YEAR}(?:0\d|1[0-2])[0-3]\d|{_YEAR}[- ]?Q[1-4]"
    rf"|\d{{1,2}}[-/. ]*[A-Za-z]{{3,9}}[-/., ]+(?:{_YEAR}|\d\d)"
    rf"|[A-Za-z]{{3,9}}[-. ]+(?:\d{{1,2}},? )?{_YEAR}"
    r"|\d{1,2}:\d\d)\b.*"
)
_OF_KIND = {
    "numbers": "has numbers stored as text, or mixed with text, in the columns {}. "
    "They are read as categories. Convert them in X and X_public, for "
    "example by pandas.to_numeric, with decimal points instead of commas.",
    "dates": "has dates or times stored as text in the columns {}. They are read as "
    "categories. Convert them in X and X_public, for example by pandas.to_datetime.",
    "nested": "has lists, arrays, complex numbers or the like in the columns {}. They "
    "are read as categories. Give each number a column of its own in X and X_public.",
    "texts": "has ids or text in the columns {}, with a different value in most rows. "
    "As categories, such columns teach nothing about new rows. Leave ids out of X and "
    "X_public. For words, use a vectorizer in representation=, and in student= for "
    "votes.",
}
_UNLESS = "Ignore this warning for codes, or if your own steps convert these columns."


def warn_of_text(X_public: Any) -> None:
    """Warn of text and objects in public rows that are of little use as categories.

    These are numbers and dates as text, columns of mostly different values, and lists.
    The message names columns and shows no value.
    """
    if sp.issparse(X_public) or len(X_public.shape) != 2:
        return
    found: dict[str, list[Any]] = {}
    names = column_names(X_public) or range(X_public.shape[1])
    for column in np.flatnonzero(~columns_of(X_public, "biufmM")).tolist():
        kind = _kind_of_values(column_of(X_public, column).tolist())
        if kind is not None:
            found.setdefault(kind, []).append(names[column])
    for kind, columns in found.items():
        message = _OF_KIND[kind].format(columns)
        warn_user(f"X_public {message} {_UNLESS}", PublicDataWarning)


def _kind_of_values(values: list[Any]) -> str | None:
    """Return why the values of a column are no categories, None if they may be."""
    kinds = {one: kind_of(one) for one in set(map(type, values))}
    if any(issubclass(one, _NESTED) for one in kinds):
        return "nested"
    if not {"text", "other"} & {*kinds.values()}:
        return None
    texts = [
        (one.decode(errors="replace") if is_a(one, bytes) else to_text(one)).strip()
        for one in values
        if kinds[type(one)] in ("text", "other")
        or (kinds[type(one)] == "number" and not is_missing_or_nan(one))
    ]
    counts = Counter(texts)
    coded = [one for one in counts if re.search(r"\d", one)]

    def are_most(found: list[str]) -> bool:
        # Few words without a digit may stand for missing values; more are categories.
        are_all_but_words = len(found) == len(coded) >= 2 * (len(counts) - len(coded))
        n_rows = sum(counts[one] for one in found)
        return are_all_but_words or n_rows >= _NEARLY_ALL * len(texts)

    dates = [one for one in coded if _DATE.fullmatch(one)]
    if len(dates) > _FEW and are_most(dates):
        return "dates"
    numbers = [match for match in map(_NUMBER.fullmatch, coded) if match]
    units = Counter(one["unit"].strip() for one in numbers)
    unit = max(units, key=units.__getitem__, default="")
    numbers = [one for one in numbers if one["unit"].strip() == unit]
    if are_most([one[0] for one in numbers]) and _are_amounts(numbers, counts):
        return "numbers"
    return "texts" if len(counts) > max(_MANY, len(texts) / 2) else None


def _are_amounts(numbers: list[re.Match[str]], counts: Counter[str]) -> bool:
    """Check whether distinct numbers of a column are amounts, and not codes.

    `counts` are those of all texts of the column.
    """
    whole = [one["whole"] for one in numbers]
    # As a postcode, and as the codes of diseases, of which some begin with a letter.
    if any(re.match(r"0\d", one) for one in whole) or any(
        re.fullmatch(r"[A-Za-z]+\d[\w.]*", one) for one in counts
    ):
        return False
    n_amounts = sum(bool(_OF_AMOUNT.match(one[0])) for one in numbers)
    n_points = sum(bool(re.search(r"[.,]\d", one[0])) for one in numbers)
    if 2 * n_amounts >= len(numbers) or n_points == len(numbers) > n_amounts > 0:
        return len(numbers) > _FEW
    widths = {*map(len, whole)}
    is_year = all(re.fullmatch(_YEAR, one) for one in whole)
    if len(widths) == 1 and min(widths) > 3 and not is_year:  # as a postcode
        return False
    if len(numbers) <= _FEW_CODES:
        return False
    # Amounts that are next to each other are about equally frequent.
    in_order = sorted(numbers, key=_whole_number)
    logs = np.log([counts[one[0]] for one in in_order])
    with np.errstate(invalid="ignore"):  # all may be equal
        is_smooth = np.corrcoef(logs[1:], logs[:-1])[0, 1] > _SMOOTH
    is_erratic = np.median(np.abs(np.diff(logs))) > _ERRATIC
    most = _MANY_CODES if is_erratic else _MANY
    return bool(is_smooth or len(numbers) > min(most, counts.total() / 2))


def _whole_number(number: re.Match[str]) -> int:
    size = int(re.sub(r"\D", "", number["whole"]) or 0)
    return -size if "-" in number["sign"] else size
