"""Columns of many codes, and their log-odds from noisy counts by class."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from sklearn_pate._inputs._containers import Table, as_table, column_names
from sklearn_pate._inputs._known_columns import to_word
from sklearn_pate._inputs._labels import public_table
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._synthetic._domain import MOST_CELLS
from sklearn_pate._synthetic._marginals import ClassTables, nearest_on_simplex
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PublicDataWarning, warn_user
from sklearn_pate.students._representations import (
    CodeLogOdds,
    TableColumns,
    places_of_codes,
    words_of,
)

#: Share of the squared mu for counts of codes. Measured on Diabetes and made-up codes.
SHARE_OF_CODES = 0.3
# "auto": share of public rows whose category has no feature of its own, and standard
# deviations by which effects of 1 on log-odds must exceed what chance and noise give.
_LEAST_RARE, _LEAST_EVIDENCE = 0.1, 4.0
# Standard deviations by which released counts must exceed what chance and noise give;
# largest variance and size of effects.
_SURE, _LARGEST_VARIANCE, _LARGEST_EFFECT = 2.0, 4.0, 3.0
# Share of public rows without a declared code that is worth a warning.
_MOST_OTHERS = 0.5
_LEAST_WEIGHT = 1e-300


@dataclass(frozen=True)
class CodedColumns:
    """Columns whose codes are counted by class, from public rows or declarations."""

    #: Place of each code, as text, by the place of the column. All other values are one
    #: code more.
    codes: dict[int, dict[str, int]]
    #: Group of each code of a column with groups.
    groups: dict[int, NDArray[np.intp]]
    names: list[Any]

    @property
    def by_name(self) -> dict[Any, list[str]]:
        """Dict of codes by the name of their column, or by its number without names."""
        return {self.names[column]: [*codes] for column, codes in self.codes.items()}

    def count(
        self, X: Table, class_codes: NDArray[np.intp], n_classes: int
    ) -> NDArray[np.int64]:
        """Count rows by column, class and code, all tables concatenated. Sensitive.

        A row with a class index of -1 counts nowhere. Each row has at most one count
        for each column.
        """
        tables = []
        labels = np.where(class_codes < 0, n_classes, class_codes)
        for column, codes in self.codes.items():
            shape = n_classes + 1, len(codes) + 1
            index = labels * shape[1] + places_of_codes(X, column, codes)
            table = np.bincount(index, minlength=shape[0] * shape[1])
            tables.append(table.reshape(shape)[:-1].ravel())
        return np.concatenate(tables).astype(np.int64)

    def tables(self, counts: NDArray[np.int64], n_classes: int) -> list[NDArray]:
        """Return the table of each column, of shape (n_classes, n_codes + 1)."""
        sizes = [n_classes * (len(codes) + 1) for codes in self.codes.values()]
        parts = np.split(counts, np.cumsum(sizes)[:-1])
        return [part.reshape(n_classes, -1) for part in parts]

    def log_odds(self, tables: list[NDArray], released: ClassTables) -> CodeLogOdds:
        """Return the transformer that released tables determine.

        `released` are the same tables with totals by class that agree.
        """
        H = helmert(len(released.shares))
        transformer = CodeLogOdds()
        transformer.columns_ = [*self.codes]
        transformer.codes_ = [*self.codes.values()]
        transformer.log_odds_ = [
            (H @ _effects(table, released, self.groups.get(column))).T
            for column, table in zip(self.codes, tables, strict=True)
        ]
        return transformer


def _effects(
    table: NDArray[np.int64], released: ClassTables, groups: NDArray[np.intp] | None
) -> NDArray[np.float64]:
    """Estimate effects of codes on the log-odds of each class, against the others.

    With groups, it is the effect of the group plus the difference of the code from it.
    """
    shares, sigma = released.shares[:, np.newaxis], released.sigma
    totals = table.sum(axis=0, dtype=np.float64)
    excess = table - shares * totals
    noise = _noise_of_excess(shares, len(shares), sigma)
    n_rows = nearest_on_simplex(totals, released.n_units)
    information = n_rows * shares * (1 - shares)
    if groups is None:
        return _shrunk_effects(excess, information, noise)
    # All other values are a group.
    in_group = np.eye(groups.max() + 2)[np.append(groups, groups.max() + 1)]
    of_groups = _shrunk_effects(
        excess @ in_group, information @ in_group, noise * in_group.sum(axis=0)
    )
    of_groups = of_groups @ in_group.T
    own = _shrunk_effects(excess - information * of_groups, information, noise)
    return of_groups + own


def _noise_of_excess(share: Any, n_classes: int, sigma: float) -> Any:
    """Compute the variance of the noise on a count less its share of all classes."""
    return sigma**2 * ((1 - share) ** 2 + (n_classes - 1) * share**2)


def _shrunk_effects(
    excess: NDArray[np.float64],
    information: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Shrink excess counts to effects on log-odds; zeros where chance explains them.

    The excess has nearly the mean information * effect and the variance information +
    noise. By class, the variance of effects is the one that explains its size.
    """
    variance = information + noise
    weights = information**2 / variance
    squared = np.maximum(np.sum(weights**2, axis=1, keepdims=True), _LEAST_WEIGHT)
    found = np.sum(weights * (excess**2 / variance - 1), axis=1, keepdims=True)
    is_sure = found > _SURE * np.sqrt(2 * squared)
    of_effects = np.where(is_sure, np.minimum(found / squared, _LARGEST_VARIANCE), 0)
    effects = of_effects * information * excess
    effects = effects / (of_effects * information**2 + variance)
    return np.clip(effects, -_LARGEST_EFFECT, _LARGEST_EFFECT)


def read_codes(
    declared: Any,
    X_public: Table,
    *,
    n_units: int | None,
    n_classes: int,
    sigma_of: Callable[[int], float],
) -> CodedColumns | None:
    """Read the columns of codes, from public rows and numbers alone; None without any.

    `sigma_of` returns the noise on the counts of a number of columns. Raises ValueError
    for a column or codes that cannot be counted.
    """
    names = column_names(X_public) or [*range(X_public.shape[1])]
    if declared == "auto":
        columns = _columns_of_codes(X_public, n_units, n_classes, sigma_of)
        declared = dict.fromkeys([names[column] for column in columns])
    codes, groups = {}, {}
    for name in declared:
        if name not in names:
            raise ValueError(
                f"codes has {name!r}, which is no column of X; use only the columns "
                f"{names}."
            )
    # Counts are stored in this order, which must not depend on the order of a dict.
    for name in sorted(declared, key=names.index):
        column, given = names.index(name), declared[name]
        public = Counter(words_of(X_public, column))
        if given is None:
            words = [word for word, _ in public.most_common(MOST_CELLS)]
        else:
            words = _declared_words(name, given, public)
        codes[column] = {word: place for place, word in enumerate(sorted(words))}
        if isinstance(given, dict):
            group_of = dict(zip(words, map(to_word, given.values()), strict=True))
            of_code = [group_of[word] for word in codes[column]]
            groups[column] = np.unique(of_code, return_inverse=True)[1]
    return CodedColumns(codes, groups, names) if codes else None


def _declared_words(name: Any, given: Any, public: Counter[str]) -> list[str]:
    """Return declared codes as text, or raise if no public row has one."""
    words = [to_word(one) for one in given]
    if not 0 < len(words) <= MOST_CELLS:
        raise ValueError(
            f"codes[{name!r}] has {counted(len(words), 'code')}; pass 1 to "
            f"{MOST_CELLS}."
        )
    twice, n_times = Counter(words).most_common(1)[0]
    if n_times > 1:
        what = "missing values" if twice == "nan" else repr(twice)
        raise ValueError(
            f"codes[{name!r}] has {what} twice, compared as text; list each code once, "
            "and convert whole numbers from 2^53 on to text."
        )
    known = sum(public[word] for word in words)
    if public and not known:
        raise ValueError(
            f"No public row has one of the codes[{name!r}], which are compared as "
            "text. Declare them as the column has them, with case and leading zeros."
        )
    share = 1 - known / max(1, public.total())
    if share > _MOST_OTHERS:
        warn_user(
            f"{100 * share:.0f} % of the public rows have none of the codes[{name!r}], "
            "which are compared as text. Declare them as the column has them, or list "
            "more of them.",
            PublicDataWarning,
        )
    return words


def check_codes(name: str, codes: Any) -> None:
    """Raise ValueError unless `codes` declares columns of codes."""
    if codes is None or (isinstance(codes, str) and codes == "auto"):
        return
    if not isinstance(codes, dict) or not codes:
        raise ValueError(
            f"{name}={codes!r} must be 'auto', None, or a dict such as {{'diagnosis': "
            "['I10', 'E11']}, with column numbers as keys if X is an array. None in "
            "place of a list takes the codes of public rows."
        )
    for column, listed in codes.items():
        if not (listed is None or isinstance(listed, (list, tuple, dict))):
            raise ValueError(
                f"{name}[{column!r}] is of type {type(listed).__name__}; pass a list "
                "of codes, a dict from codes to groups, or None for those of public "
                "rows."
            )
        of_groups = listed.values() if isinstance(listed, dict) else ()
        for one in (*(listed or ()), *of_groups):
            if not isinstance(one, (str, Real)) and one is not None:
                raise ValueError(
                    f"{name}[{column!r}] has {type(one).__name__} among codes or "
                    "groups, which are text or numbers. In a dict, the keys are codes, "
                    "and the values are groups."
                )


def problems_of_codes(declared: dict[Any, Any], X: Any, X_public: Any) -> Iterator[str]:
    """Describe values that are none of the declared codes. Sensitive."""
    X, X_public = as_table(X), public_table(X_public)
    if X_public is not None:
        X = read_like_public(X, as_table(X_public, "X_public"), refuse=False)
    names = column_names(X) or [*range(X.shape[1])]
    for name, listed in declared.items():
        if listed is not None and name in names:
            codes = dict.fromkeys(map(to_word, listed), 0)
            places = places_of_codes(X, names.index(name), codes)
            n_others = int(np.count_nonzero(places))
            if n_others:
                what = counted(n_others, "value")
                yield f"Column {name!r}: {what} without a declared code."


def _columns_of_codes(
    X_public: Table,
    n_units: int | None,
    n_classes: int,
    sigma_of: Callable[[int], float],
) -> list[int]:
    """Find columns of many categories whose counts may tell the classes apart."""
    if n_units is None or n_classes < 2:
        return []
    found = {}
    for column, share in TableColumns().fit(X_public).rare_shares.items():
        if share > _LEAST_RARE:
            words = words_of(X_public, column)
            found[column] = np.array([*Counter(words).values()])
    while found:
        sigma = sigma_of(len(found))
        kept = {
            column: numbers
            for column, numbers in found.items()
            if _evidence(numbers, n_units, n_classes, sigma) > _LEAST_EVIDENCE
        }
        if len(kept) == len(found):
            break
        found = kept
    return [*found]


def _evidence(
    numbers: NDArray[np.int64], n_units: int, n_classes: int, sigma: float
) -> float:
    """Compute by how many standard deviations effects of 1 would exceed chance.

    For equal classes, and the numbers of public rows of each code. A code of one public
    row may be in no other row, as an id is.
    """
    share = 1 / n_classes
    information = n_units * (numbers - 1) / numbers.sum() * share * (1 - share)
    noise = _noise_of_excess(share, n_classes, sigma)
    return float(np.sqrt(np.sum((information**2 / (information + noise)) ** 2) / 2))
