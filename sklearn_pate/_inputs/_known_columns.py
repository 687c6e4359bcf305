"""Columns that a model knows, columns of text, and warnings of others."""

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import (
    DATES,
    NUMBERS,
    column_kinds,
    column_names,
    column_of,
    is_frame,
)
from sklearn_pate._inputs._odd_values import (
    is_a,
    is_missing_or_nan,
    kind_of,
    kinds_of,
    of_each,
    to_number,
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
#: Kinds of columns that are not read as numbers.
CATEGORIES = ("text", "category")
# Rows that are looked at, evenly spaced.
_MOST_ROWS = 1000
# A column with a larger share of odd values than is usual is named.
_SHARE = 0.1
# A problem with a smaller probability by chance is reported.
_UNLIKELY = 0.001
# Fewest numbers that show the unit of a column.
_FEWEST_NUMBERS = 10
# Names of columns in a message.
_MOST_NAMES = 10
_TYPES = "Values of another type, such as text where the model knows numbers"
_WORDS = "Categories that the model does not know"
_ABSENT = "No value at all"
_RANGE = "Numbers outside the range that the model knows"


def warn_of_text(X_public: Any) -> None:
    """Warn of text and objects in public rows that are of little use as categories.

    These are numbers and dates as text, columns of mostly different values, and lists.
    The message names columns and shows no value.
    """
    if sp.issparse(X_public) or len(X_public.shape) != 2:
        return
    found: dict[str, list[Any]] = {}
    names = column_names(X_public) or range(X_public.shape[1])
    for column, of_type in enumerate(column_kinds(X_public)):
        if of_type in NUMBERS + DATES:
            continue
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


@dataclass(frozen=True)
class KnownColumns:
    """Properties of a model's columns, from public rows or a domain alone."""

    __module__ = "sklearn_pate.stored_types"  # its name in files

    #: Kind of each column, as in `kind_of_column`.
    kinds: list[str]
    #: Range of the numbers of a column, rounded; NaN where it is not known.
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    #: Bounds of the probabilities that a value is missing, or a new category.
    missing: NDArray[np.float64]
    new: NDArray[np.float64]
    #: Categories of a column that occur twice, as text; none of ids and free text.
    words: dict[int, list[str]]
    #: Whether the model takes text for a number, or 1.0 for "1", as another value.
    is_exact: bool

    def __post_init__(self) -> None:
        numbers = np.array([self.low, self.high, self.missing, self.new])
        words = [*self.words.values()]
        if (
            not isinstance(self.kinds, list)
            or numbers.dtype.kind != "f"
            or numbers.shape != (4, len(self.kinds))
            or not {*self.words} <= {*range(len(self.kinds))}
            or not all(isinstance(one, str) for each in words for one in each)
            or not isinstance(self.is_exact, bool)
        ):
            raise ValueError("what is known of the columns does not fit together")

    @classmethod
    def of_numbers(cls, n_columns: int) -> Self:
        """Describe columns of numbers of any size, which may be text."""
        nan, one = np.full(n_columns, np.nan), np.ones(n_columns)
        return cls(["number"] * n_columns, nan, nan, one, 0 * one, {}, False)

    @classmethod
    def of(cls, X: Any, model: Any = None) -> Self | None:
        """Describe the columns of public rows that a model was fitted on.

        None for a sparse matrix.
        """
        if sp.issparse(X):
            return None
        model = getattr(model, "estimator_", model)  # without a wrapper for labels
        first = model.steps[0][1] if hasattr(model, "steps") else model
        first = getattr(first, "representation_", first)
        is_exact = not getattr(first, "_reads_any_type", False)
        if not is_frame(X):
            X = X.reshape(len(X), -1)
        kinds = ["number"] * X.shape[1]
        words: dict[int, list[str]] = {}
        low, high = np.full((2, X.shape[1]), np.nan)
        missing, new = np.zeros((2, X.shape[1]))
        if not is_frame(X) and X.dtype.kind in "biuf":
            low, high = _rounded_range(np.fmin.reduce(X), np.fmax.reduce(X))
            missing = _at_most(np.isnan(X).sum(axis=0), len(X))
            return cls(kinds, low, high, missing, new, words, is_exact)
        for place in range(X.shape[1]):
            kinds[place] = kind_of_column(_safe_indexing(X, place, axis=1))
            values = column_of(X, place)
            if kinds[place] not in CATEGORIES:
                numbers = to_numbers(values)
                missing[place] = _at_most(np.isnan(numbers).sum(), len(values))
                if kinds[place] != "date":  # new rows are of later days
                    low[place], high[place] = _rounded_range(
                        np.fmin.reduce(numbers), np.fmax.reduce(numbers)
                    )
                continue
            present = [one for one in values.tolist() if not is_missing_or_nan(one)]
            counts = Counter(map(to_word, present))
            # What occurs once may be private, and a category is new without one row.
            n_rare = sum(count for count in counts.values() if count <= 2)
            missing[place] = _at_most(len(values) - len(present), len(values))
            new[place] = _at_most(n_rare, len(present))
            if n_rare < len(present) / 2:
                words[place] = sorted(one for one in counts if counts[one] > 1)
        return cls(kinds, low, high, missing, new, words, is_exact)

    def warn(self, X: Any) -> None:
        """Warn once of columns of rows to predict that the model does not know."""
        if sp.issparse(X):
            return
        n_rows = X.shape[0]
        if n_rows > _MOST_ROWS:
            rows = np.linspace(0, n_rows - 1, _MOST_ROWS).astype(int)
            X = _safe_indexing(X, rows)
        names = column_names(X) or range(len(self.kinds))
        if not is_frame(X):
            X = X.reshape(len(X), -1)
        if X.shape[1] != len(self.kinds):  # images of another layout
            return
        found: dict[str, list[Any]] = {}
        for place, problem in self._problems(X).items():
            found.setdefault(problem, []).append(names[place])
        if found:
            listed = " ".join(f"{what}: {_in_short(of)}." for what, of in found.items())
            warn_user(
                "Some columns of X are not as in the public rows or domain of the fit, "
                f"and predictions may be wrong. {listed} Give these columns the types, "
                "spelling and units of the fit."
            )

    def _problems(self, X: Any) -> dict[int, str]:
        """Return problems of columns by position, for some rows of a table."""
        is_plain = not is_frame(X) and X.dtype.kind in "biuf"
        numbers = np.array(X, float) if is_plain else np.full(X.shape, np.nan)
        is_present, is_odd = ~np.isnan(numbers), np.zeros(X.shape, dtype=bool)
        for place, kind in enumerate(self.kinds):
            if not (is_plain and kind == "number"):
                read = self._read(place, column_of(X, place))
                numbers[:, place], is_present[:, place], is_odd[:, place] = read
        n_rows, n_present, n_odd = len(numbers), is_present.sum(0), is_odd.sum(0)
        is_outside = (numbers < self.low) | (numbers > self.high)
        # One odd cell is no odd column, except for a number in a single row.
        is_word = np.isin(self.kinds, CATEGORIES)
        is_told = n_odd > np.where((n_rows == 1) & ~is_word, 0, 1)
        is_told &= n_odd > (_SHARE + self.new) * n_present
        is_told &= binom.sf(n_odd - 1, n_present, self.new) < _UNLIKELY
        problems = {
            place: _WORDS if is_word[place] else _TYPES
            for place in np.flatnonzero(is_told).tolist()
        }
        is_absent = (n_present == 0) & (self.missing**n_rows < _UNLIKELY) & (n_rows > 1)
        problems |= dict.fromkeys(np.flatnonzero(is_absent).tolist(), _ABSENT)
        is_far = (n_present >= _FEWEST_NUMBERS) & (is_outside.sum(0) > n_present / 2)
        return dict.fromkeys(np.flatnonzero(is_far).tolist(), _RANGE) | problems

    def _read(self, place: int, values: NDArray[Any]) -> tuple[Any, Any, Any]:
        """Return numbers, which values are present, and which of them are odd."""
        kind = self.kinds[place]
        if values.dtype.kind in "biufmM" and kind not in CATEGORIES:
            numbers = to_numbers(values)
            is_present = ~np.isnan(numbers)
            return numbers, is_present, is_present & (kind_of_column(values) != kind)
        listed = values.tolist()
        of_type = {one: kind_of(one) for one in set(map(type, listed))}
        kinds = np.array([of_type[type(one)] for one in listed])
        is_present = ~np.array(of_each(is_missing_or_nan, listed), dtype=bool)
        if kind not in CATEGORIES:
            numbers, is_text = to_numbers(values), kinds == "text"
            is_odd = (kinds != kind) & (self.is_exact | ~is_text | np.isnan(numbers))
            return numbers, is_present, is_present & is_odd
        is_odd = np.zeros(len(listed), dtype=bool)
        if place in self.words:
            known = {*self.words[place]}
            is_odd = np.array([one not in known for one in of_each(to_word, listed)])
            is_odd |= self.is_exact & ((kinds == "text") != (kind == "text"))
        return np.nan, is_present, is_present & is_odd


def _rounded_range(low: Any, high: Any) -> tuple[Any, Any]:
    """Round a range outwards, so that it is of no single row; NaN if it is empty."""
    with np.errstate(all="ignore"):
        width = np.subtract(high, low, dtype=np.float64)
        unit = 10 ** np.floor(np.log10(width / 2))
        return np.floor(low / unit) * unit, np.ceil(high / unit) * unit


def _at_most(count: Any, n_values: int) -> Any:
    """Bound the probability of an event that occurred `count` times, at 3 sigma."""
    return np.minimum((count + 3 * np.sqrt(count) + 3) / max(1, n_values), 1)


def warn_of_columns(estimator: Any, X: Any) -> None:
    """Warn of columns of rows to predict that a fitted estimator does not know."""
    known = getattr(estimator, "_known_columns", None)
    if known is not None:
        known.warn(X)


def _in_short(names: list[Any]) -> str:
    """List names, the first ones if there are many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{names[:_MOST_NAMES]}{more}"


def kind_of_column(column: Any) -> str:
    """Return the kind of a column of public values.

    It is "text" if any value is, "category" for a categorical type and for objects that
    are no number, and else the kind of `kind_of`.
    """
    values = np.asarray(column)
    if str(getattr(column, "dtype", None)) == "category":
        return "text" if "text" in kinds_of(values.tolist()) else "category"
    if values.dtype.kind in "biufmM":
        return {"M": "date", "m": "duration"}.get(values.dtype.kind, "number")
    kinds = kinds_of(values.tolist())
    if "text" in kinds:
        return "text"
    return "category" if "other" in kinds else min(kinds, default="number")


def to_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Read values as numbers, each on its own, as `to_number` does."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        seconds = values.astype("M8[s]").astype(np.float64)
        return np.where(np.isnat(values), np.nan, seconds / 86400)
    if values.dtype.kind == "m":
        return values / np.timedelta64(1, "D")
    return np.array(of_each(to_number, values.tolist()), dtype=np.float64)


def to_word(value: Any) -> str:
    """Convert a category to text, the same for a number of any type.

    Missing values are one category. A missing value makes libraries read whole numbers
    as floats, which must change no other word.
    """
    if is_missing_or_nan(value):
        return "nan"
    if is_a(value, (Real, Decimal)) and not is_a(value, bool):
        number = to_number(value)
        return to_text(int(number) if number.is_integer() else number)
    return to_text(value)
