"""PrivacyLedger: the privacy budget of private data over all fits."""

import math
import os
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._entries import (
    PrivacyCost,
    admits,
    check_not_lost,
    costs,
    create_once,
    enter,
    entry_cost,
    file_exists,
    make_key,
    now,
    total_costs,
    transaction,
)
from sklearn_pate.accounting._gdp import gdp_epsilon
from sklearn_pate.accounting._neighbours import NEIGHBOURS
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.accounting._value_checks import WIDTH, counted
from sklearn_pate.accounting.composition import RenyiFilter
from sklearn_pate.exceptions import BudgetExceededError, LedgerError


def rounded_down(value: float) -> float:
    """Round a positive number down to three digits."""
    digits = 2 - math.floor(math.log10(value))
    return math.floor(value * 10.0**digits) / 10.0**digits


def fitting_epsilon(largest: float, excess: Callable[[float], float]) -> float | None:
    """Find an epsilon of three digits within a budget, None if below a tenth.

    `excess` returns the ratio of the cost at an epsilon to what is left: at most 1 if
    it fits.
    """
    epsilon = largest
    while epsilon >= largest / 10:
        epsilon = rounded_down(epsilon)
        ratio = excess(epsilon)
        if ratio <= 1:
            return epsilon
        # As for Gaussian noise; other costs fall more slowly.
        epsilon *= 0.999 / math.sqrt(ratio)
    return None


@dataclass(frozen=True)
class LedgerEntry:
    """Record of one release in a ledger, for auditors.

    An entry must not be published. The cost depends on no private value, but
    fingerprints reveal which fits used equal data. The guarantee does not cover `time`
    and `who`.

    Parameters
    ----------
    number : int
        Number of the entry, from 1.

    time : str
        Time in UTC.

    who : str
        User and machine.

    dataset : str
        Keyed fingerprint of the private rows, or a given name.

    fit : str
        Keyed fingerprint of the inputs that determine the answers, or a given name.

    description : str
        Description of the release and its mechanism.

    epsilon : float
        Epsilon of this release alone at `delta`, exact if the exact cost is known.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    share : float
        Fraction of the budget that the release takes, at most 1, at the Renyi order
        with the most budget left. The fractions of all entries add up to `spent` of the
        ledger.

    Notes
    -----
    The guarantee for all entries together is the budget of the ledger, not the sum of
    `epsilon`. A Renyi filter composes the costs (Feldman and Zrnic 2021); see
    :class:`~sklearn_pate.PrivacyLedger`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_pate import PrivacyLedger
    >>> from sklearn_pate.mechanisms import GNMax
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> curve = GNMax(sigma=40).cost(n_queries=50, n_classes=2).curve
    >>> number = ledger.charge(
    ...     curve,
    ...     delta=1e-6,
    ...     unit="row",
    ...     relation="replace-one",
    ...     description="50 answers on lungs",
    ... )
    >>> (entry,) = ledger.entries()
    >>> print(f"{entry.share:.1%}", f"{entry.epsilon:.2f}", entry.description)
    10.8% 0.90 50 answers on lungs
    >>> folder.cleanup()
    """

    number: int
    time: str
    who: str
    dataset: str
    fit: str
    description: str
    epsilon: float
    delta: float
    share: float


def read_entries(file: Connection, privacy_filter: RenyiFilter) -> list[LedgerEntry]:
    """Read all entries of a ledger, in order."""
    lines = file.execute(
        "SELECT id, time, who, dataset, fit, description, epsilon, delta FROM charges "
        "ORDER BY id"
    )
    spent = costs(file)
    left = privacy_filter.left(spent)
    most = left.index(max(left))
    limit = privacy_filter.limits[most]
    return [
        # A first entry may be within the budget by its profile alone.
        LedgerEntry(*(*line, min(cost[most] / limit, 1.0)))
        for line, cost in zip(lines, spent, strict=True)
    ]


def write_report(ledger: "PrivacyLedger", file: Connection) -> str:
    """Describe a ledger in words and a table."""
    unit, relation, created = file.execute(
        "SELECT unit, relation, created FROM budget"
    ).fetchone()
    title = f"{ledger!r}, created {created}"
    if unit is None:
        return (
            f"{title}: nothing was charged yet, and 100% is left. The first "
            "entry sets the unit of privacy and the neighbour relation."
        )
    entries = read_entries(file, ledger.filter)
    table = [HEADS, *(_cells(entry) for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
    paragraphs = (
        "All releases charged here, now and later, are together "
        f"(epsilon={ledger.epsilon!r}, delta={ledger.delta!r})-differentially private. "
        "Neighbouring data sets differ by one change: "
        f"{NEIGHBOURS[unit, relation]}.",
        f"{ledger.spent:.2%} of this budget is spent, in "
        f"{counted(len(entries), 'entry')}, and {1 - ledger.spent:.2%} is left"
        f"{_as_epsilon(ledger, file)}. {WHY_SHARES}",
        f"Estimate, not a guarantee: epsilon={_estimate(ledger, file):.3f} so far, if "
        "no fit was chosen in view of another.",
    )
    wrapped = (textwrap.fill(one, WIDTH, break_on_hyphens=False) for one in paragraphs)
    return "\n\n".join([title, *wrapped, "\n".join(rows)])


def _newest_entry(file: Connection) -> int:
    """Return the number of the last entry, 0 without any."""
    (number,) = file.execute("SELECT COALESCE(MAX(id), 0) FROM charges").fetchone()
    return int(number)


def _as_epsilon(ledger: "PrivacyLedger", file: Connection) -> str:
    """Describe what is left by the epsilon of one more Gaussian release."""
    of_one = ledger.filter.cost(RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS / 2))  # mu = 1
    taken, left = ledger.filter.budget_fractions(of_one, total_costs(file))
    if left <= 0:
        return ""
    epsilon = rounded_down(gdp_epsilon(math.sqrt(left / taken), ledger.delta))
    return f": one release with Gaussian noise of epsilon={epsilon:g} at this delta"


def _estimate(ledger: "PrivacyLedger", file: Connection) -> float:
    """Compute epsilon of all entries together, at the best Renyi order now."""
    curves = [
        RdpCurve(np.frombuffer(orders, "<f8"), np.frombuffer(values, "<f8"))
        for orders, values in file.execute("SELECT orders, curve FROM charges")
    ]
    at_order = dict(
        zip(ledger.filter.orders, zip(*costs(file), strict=True), strict=True)
    )
    estimates = [ledger.epsilon, sum(at_order.get(np.inf, [np.inf]))]
    common = sorted(set.intersection(*(set(curve.orders) for curve in curves)))
    if common:
        values = sum(curve.values[np.isin(curve.orders, common)] for curve in curves)
        estimates.append(RdpCurve(common, values).quiet_epsilon(ledger.delta))
    return min(estimates)


#: Reason why shares are not quotients of epsilons.
WHY_SHARES = (
    "A share of the budget is no share of its epsilon: releases with noise cost less "
    "together than the sum of their epsilons. With Gaussian noise, a third of the "
    "budget's epsilon takes less than a third of the budget."
)
HEADS = (
    *("", "time (UTC)", "share", "epsilon", "delta", "dataset", "fit", "who"),
    "what",
)


def _cells(entry: LedgerEntry) -> tuple[str, ...]:
    return (
        str(entry.number),
        entry.time,
        f"{entry.share:.2%}",
        write_epsilon(entry.epsilon),
        f"{entry.delta:g}",
        entry.dataset[:12],
        entry.fit[:12],
        entry.who,
        entry.description,
    )


class PrivacyLedger:
    """Durable record of all releases about one sensitive data set, with a budget.

    Every fit with this ledger records its worst-case cost before any noise is drawn. A
    fit that would exceed the budget raises an error, and draws no noise. All releases
    together are (`epsilon`, `delta`)-differentially private, even if results of earlier
    releases determine later releases.

    The file survives crashes. Several processes of one user on one machine may use the
    ledger at once. A fit with equal data, parameters and integer ``random_state`` is
    charged once; a repeated fit returns the stored answers. Equal answers of two fits
    thus reveal that the data of the fits are equal. Before a fit on rows or labels
    prepared in another way, change ``random_state``.

    Parameters
    ----------
    path : str or path-like
        File of the ledger, one for each sensitive data set. Keep the file on a local
        disk, as file locks are unreliable on network drives. Make backups after every
        entry: an older copy lacks later entries.

    epsilon : float, default=None
        Privacy budget of the data set. `epsilon` and `delta` create the file if it does
        not exist, and cannot be changed afterwards. Default: the budget in the file.

    delta : float, default=None
        Delta of the (epsilon, delta) guarantee, well below one over the number of rows.

    orders : array-like of shape (n_orders,), default=None
        Renyi orders at which costs add up, fixed when the file is created. Default: the
        order that admits the most answers of the default mechanism. With
        several orders, a ledger is better for several kinds of mechanisms, but admits
        slightly fewer releases with Gaussian noise.

    key_file : str or path-like, default=None
        File with the secret key of the fingerprints of data sets and fits, created with
        the ledger. Default: `path` with ".key" added. Do not pass the key on with the
        ledger, as a reader with the key can test guesses about the data.

    Attributes
    ----------
    path : Path
        File of the ledger.

    epsilon : float
        Privacy budget.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    filter : RenyiFilter
        Renyi filter with the limits on the sums of costs.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the file has another budget.

    LedgerError
        If the file cannot be read, written or created, is missing beside its key, or
        was replaced by another ledger. Every method may raise this error.

    Notes
    -----
    The budget is a Renyi filter (Feldman and Zrnic 2021, "Individual privacy accounting
    via a Renyi filter", Theorem 4.3), see
    :class:`~sklearn_pate.accounting.composition.RenyiFilter`. Renyi costs add up at
    orders that are fixed beforehand, for any adaptive choice of fits. The limit at each
    order is the divergence that Proposition 12 of Canonne, Kamath, Steinke (2020)
    converts to the budget. If all costs are pure (delta is 0), a fit is also admitted
    if the sum of their epsilons is within the budget. For example, a fit with a pure
    epsilon of 0.5 takes a sixth of a budget of 3. After the first cost with a positive
    delta, pure releases count by their Renyi costs. The proof is on the page
    :doc:`Privacy cost of an answer </accounting>`.

    The first entry is also admitted if its privacy profile (delta at every epsilon) is
    within the budget, so that one fit may use the whole budget. If the Renyi cost of
    the first entry exceeds the budget, no further entry is admitted. If only one pair
    (epsilon, delta) of the first release is known, this delta is subtracted from the
    delta of the budget.

    The first entry determines the unit of privacy and the neighbour relation of a
    ledger. The guarantee assumes that the parameters of each fit were chosen without
    private data, or from earlier releases only. Without the old key file, stored
    answers are not found, and equal fits are charged again.

    The file, `entries`, `report` and `spent` are for the data holder and auditors, not
    for publication. Entries show the user and time of each fit, and which fits used
    equal data. See :doc:`the threat model </threat-model>`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(600, centers=2, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> clf = PATEClassifier(
    ...     LogisticRegression(),
    ...     n_teachers=40,
    ...     mechanism=GNMax(sigma=10),
    ...     n_queries=10,
    ...     epsilon=None,
    ...     ledger=ledger,
    ...     random_state=0,
    ... )
    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> print(f"{ledger.spent:.0%} of the budget is spent")
    35% of the budget is spent

    The same fit again returns the same answers, at no further cost:

    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> print(f"{ledger.spent:.0%} in {len(ledger.entries())} entry")
    35% in 1 entry
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        orders: ArrayLike | None = None,
        key_file: Any = None,
    ) -> None:
        # Absolute, as workers may have another working directory.
        self.path = _absolute("path", path)
        self._key_file = _absolute(
            "key_file", f"{self.path}.key" if key_file is None else key_file
        )
        if self._key_file == self.path:
            raise ValueError(
                f"key_file={key_file!r} is the ledger itself; choose another file."
            )
        if (epsilon is None) != (delta is None):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} together are one budget; "
                "pass both to create a ledger, or neither to open one."
            )
        check_not_lost(self.path, path, self._key_file)
        exists = file_exists(self.path)
        if epsilon is not None and delta is not None:
            wanted = RenyiFilter.for_budget(epsilon, delta, orders)
            epsilon, delta = float(epsilon), float(delta)
            if not exists:
                limits = list(zip(wanted.orders, wanted.limits, strict=True))
                create_once(self.path, epsilon, delta, limits, now())
                make_key(self._key_file)  # tells later that the file was lost
        elif not exists:
            raise LedgerError(
                f"There is no ledger at {self.path}; pass epsilon= and delta= to "
                "create one, or correct the path."
            )
        with transaction(self.path, "DEFERRED") as file:
            self.epsilon, self.delta, self._identity = file.execute(
                "SELECT epsilon, delta, identity FROM budget"
            ).fetchone()
            limits = file.execute(
                "SELECT renyi_order, value FROM limits ORDER BY renyi_order"
            ).fetchall()
        self._newest = 0  # last entry that was read or made
        self.filter = RenyiFilter(*zip(*limits, strict=True))
        if epsilon is not None and (epsilon, delta) != (self.epsilon, self.delta):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} differ from the budget of "
                f"{self.path}, which is fixed at {self.epsilon!r} and {self.delta!r}; "
                "leave both out to open this ledger."
            )
        if orders is not None and (
            np.unique(np.asarray(orders, dtype=np.float64)).tolist()
            != [*self.filter.finite_orders]
        ):
            raise ValueError(
                f"orders={orders!r} differ from the Renyi orders of {self.path}, "
                f"which are fixed at {self.filter.finite_orders}; leave them out to "
                "open this ledger."
            )

    def reading(self) -> AbstractContextManager[Connection]:
        """Open the file to read.

        Returns
        -------
        file : context manager of sqlite3.Connection
            All reads inside the block see the same state.
        """
        return self._transaction("DEFERRED")

    def writing(self) -> AbstractContextManager[Connection]:
        """Open the file to read and write, with no other writer at the same time.

        Returns
        -------
        file : context manager of sqlite3.Connection
            Connection in a transaction, written to disk at the end of the block.
        """
        return self._transaction("IMMEDIATE")

    @contextmanager
    def _transaction(
        self, kind: Literal["DEFERRED", "IMMEDIATE"]
    ) -> Iterator[Connection]:
        with transaction(self.path, kind) as file:
            (identity,) = file.execute("SELECT identity FROM budget").fetchone()
            if identity != self._identity:
                raise LedgerError(
                    f"{self.path} now holds another ledger than the one that was "
                    f"opened; open it again: PrivacyLedger({str(self.path)!r})."
                )
            if _newest_entry(file) < self._newest:
                raise LedgerError(
                    f"{self.path} lacks entries that it had before: it was replaced by "
                    "an older copy. Restore a copy that has every entry."
                )
            yield file
            newest = _newest_entry(file)
        self._newest = newest  # after the commit

    @property
    def key(self) -> bytes:
        """Secret key of the fingerprints.

        Returns
        -------
        key : bytes
            Content of the key file, which is created if it does not exist.

        Raises
        ------
        LedgerError
            If the key file cannot be read or created, or its key is too short.
        """
        return make_key(self._key_file)

    @property
    def spent(self) -> float:
        """Fraction of the budget that is spent.

        Returns
        -------
        spent : float
            Sum of all costs, divided by the limit on the sum, at the Renyi order with
            the most budget left. Between 0 and 1, and equal to 1 if the first entry was
            admitted by its privacy profile alone.
        """
        with self.reading() as file:
            spent = 1 - max(self.filter.left(total_costs(file)))
        return min(max(spent, 0.0), 1.0)

    def fits(self, curve: RdpCurve, profile: PrivacyProfile | None = None) -> bool:
        """Check whether a cost is within the remaining budget, without a charge.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        profile : PrivacyProfile, default=None
            Privacy profile of the same release, as in :meth:`charge`.

        Returns
        -------
        fits : bool
            True if the cost is within the remaining budget. Another process may still
            charge the ledger first. Unit and relation are not checked.
        """
        with self.reading() as file:
            return admits(self, total_costs(file), entry_cost(self, curve), profile)

    def budget_fractions(self, curve: RdpCurve) -> tuple[float, float]:
        """Return the fraction of the budget that a cost takes, and the fraction left.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        Returns
        -------
        taken : float
            Fraction that the cost takes, at the Renyi order that admits the cost most
            often.

        left : float
            Fraction left at this Renyi order, which admits the cost ``left / taken``
            times.
        """
        with self.reading() as file:
            cost = self.filter.cost(curve)
            return self.filter.budget_fractions(cost, total_costs(file))

    def charge(
        self,
        curve: RdpCurve,
        *,
        delta: float,
        unit: str,
        relation: str | None = None,
        description: str,
        dataset: str = "",
        fit: str = "",
        profile: PrivacyProfile | None = None,
        uncovered_delta: float = 0.0,
    ) -> int:
        """Record the cost of a release, before any noise is drawn for it.

        Estimators of this package call this method. Call the method yourself for other
        releases.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost, which must not depend on data.

        delta : float
            Delta at which the epsilon of the entry is shown, not the delta of the
            budget.

        unit : {"row", "group", "party"}
            Unit of privacy.

        relation : {"replace-one", "add-remove", "add-remove-or-change"}, default=None
            Neighbour relation of the cost, as in :class:`~sklearn_pate.PrivacySpent`.
            Required for "row" and "group". For "party" there is only one relation.

        description : str
            Description of the release for auditors, in one line without private values.

        dataset : str, default=""
            Name of the data, without private values.

        fit : str, default=""
            Name of the release.

        profile : PrivacyProfile, default=None
            Worst-case privacy profile of this release, such as
            ``privacy_spent_.profile``. An empty ledger also admits a release whose
            profile is within the budget. If its `curve` exceeds the budget, no later
            release is admitted.

        uncovered_delta : float, default=0.0
            Probability with which the release may reveal everything, in addition to the
            cost of `curve`. The ledger subtracts this probability from the delta of the
            budget. Only an empty ledger admits such a release, see
            :class:`~sklearn_pate.accounting.OtherRelease`.

        Returns
        -------
        number : int
            Number of the entry, which is then on disk.

        Raises
        ------
        BudgetExceededError
            If the cost exceeds the remaining budget. Nothing was charged.

        ValueError
            If the ledger has another unit or relation, or a parameter is invalid.

        LedgerError
            If the file cannot be written. Nothing was charged.
        """
        if relation is None:
            relation = _only_relation(unit)
        cost = PrivacyCost(
            curve,
            delta,
            unit,
            relation,
            description,
            dataset,
            fit,
            profile,
            uncovered_delta,
        )
        try:
            with self.writing() as file:
                return enter(self, file, cost)
        except BudgetExceededError as error:
            taken, left = self.budget_fractions(curve)
            if uncovered_delta > 0 or not 0 < taken < np.inf or left <= 0:
                raise
            n_times = rounded_down(left / taken)
            fits = f"{n_times:g} times this cost would fit into this budget"
            epsilon = (curve * n_times).quiet_epsilon(delta)
            if 0 < epsilon < np.inf:
                fits += f", such as a release of epsilon={rounded_down(epsilon):g}"
            raise BudgetExceededError(f"{error} {fits}.") from None

    def entries(self) -> list[LedgerEntry]:
        """List all entries.

        Returns
        -------
        entries : list of LedgerEntry
            Entries in the order of their numbers.
            ``pandas.DataFrame(ledger.entries())`` makes a table.
        """
        with self.reading() as file:
            return read_entries(file, self.filter)

    def report(self) -> str:
        """Describe the ledger in words and a table, for auditors.

        Returns
        -------
        report : str
            The guarantee, the fraction of the budget spent, and one line per entry.
        """
        with self.reading() as file:
            return write_report(self, file)

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return (
            f"PrivacyLedger({str(self.path)!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyLedger):
            return NotImplemented
        return (self.path, self._key_file) == (other.path, other._key_file)

    def __hash__(self) -> int:
        return hash((self.path, self._key_file))

    # clone() and searches copy parameters: every copy must be the same ledger.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _only_relation(unit: str) -> str:
    """Return the neighbour relation of a unit of privacy that has only one."""
    relations = [relation for one, relation in NEIGHBOURS if one == unit]
    if len(relations) != 1:
        raise ValueError(
            f"unit={unit!r} needs a relation, got None; (unit, relation) must be one "
            f"of {[*NEIGHBOURS]}."
        )
    return relations[0]


def _absolute(name: str, path: Any) -> Path:
    try:
        if os.fspath(path):
            return Path(path).resolve()
    except (OSError, RuntimeError, TypeError, ValueError):  # loops of links, NUL
        pass
    raise ValueError(
        f"{name}={path!r} must name a file, such as 'patients.sqlite'; it is created "
        "if it does not exist."
    )
