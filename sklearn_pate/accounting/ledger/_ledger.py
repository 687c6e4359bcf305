"""PrivacyLedger: what a sensitive data set has given away, over fits and years."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import NEIGHBOURS
from sklearn_pate.accounting.composition._renyi_filter import RenyiFilter
from sklearn_pate.accounting.ledger._entries import PrivacyCost, costs, enter, now
from sklearn_pate.accounting.ledger._spending_report import (
    Charge,
    read_entries,
    write_report,
)
from sklearn_pate.accounting.ledger._sqlite import (
    create_once,
    is_there,
    make_key,
    reading,
    writing,
)
from sklearn_pate.exceptions import LedgerError

__all__ = ["PrivacyLedger"]


class PrivacyLedger:
    """A durable account of all that is released about one sensitive data set.

    A file with a budget. Every fit that is given the ledger enters its cost, the worst
    case over all votes, before any noise is drawn; one that would exceed the budget
    raises, and draws nothing. What is released by all of them together is (`epsilon`,
    `delta`)-differentially private, however each was chosen in view of the ones before.

    The account survives crashes, and is shared by the processes of one user on one
    machine: searches with ``n_jobs``, several notebooks. Fits that agree in data,
    parameters and an integer ``random_state`` are one release: it is charged once, and
    its answers, which the file keeps, are handed out again. So equal answers show equal
    data: give every fit whose rows or labels were prepared in another way another
    ``random_state``.

    Parameters
    ----------
    path : str or path-like
        The file, one for each sensitive data set. Keep it on a local disk, as locks are
        unreliable on network drives, and back it up: a lost or older file has forgotten
        what was released.

    epsilon : float, default=None
        The budget of the data set. With `delta`, a file that does not exist is created.
        None reads it from the file. It cannot be changed afterwards.

    delta : float, default=None
        The probability mass that epsilon does not cover, well below one over the number
        of rows.

    orders : array-like of shape (n_orders,), default=None
        Renyi orders at which charges add up, fixed when the file is created. None takes
        the one that holds the most answers of the default mechanism. Several share
        `delta`: they lose a little for plain Gaussian noise, and gain if charges of
        other shapes are to come. Pure epsilons always add up as well, at no loss, and
        the budget holds whichever of these sums is within it.

    key_file : str or path-like, default=None
        The key of the fingerprints by which the ledger tells data sets and fits apart
        without knowing them. None means the path with ".key" added. It is made, for
        this user only, when it does not exist. Do not hand it on with the ledger: who
        has it can test guesses about the data. Without the old key, answers are not
        found again, and are paid for again.

    Attributes
    ----------
    path : Path
        The file.

    epsilon : float
        The budget.

    delta : float
        The probability mass that the budget does not cover.

    filter : RenyiFilter
        The limits at which charges add up.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the file has another budget.

    LedgerError
        If the file cannot be read or created.

    Notes
    -----
    The account is a Renyi filter (Feldman and Zrnic 2021, "Individual privacy
    accounting via a Renyi filter", Theorem 4.3), see
    :class:`~sklearn_pate.accounting.composition.RenyiFilter`: at orders that are fixed
    beforehand, Renyi costs add up to the divergence that Proposition 12 of Canonne,
    Kamath, Steinke (2020) turns into the budget, however later fits were chosen. While
    all charges are pure, their epsilons may also add up to the budget, which holds more
    of a few large ones: a fit with a pure epsilon of 0.5 takes a sixth of a budget of
    3. Once a charge has a delta, pure ones count by their Renyi costs. The proof is in
    :doc:`What an answer costs </accounting>`.

    A ledger has one unit of privacy and one neighbour relation, those of its first
    charge. It takes the parameters of the fits as chosen without a look at private
    data, or in view of earlier releases.

    The file and what is read from it (`charges`, `report`, `spent`) are for the data
    holder and auditors, not for publication: costs depend on no private value, but
    they say who fitted when, and whether two fits saw the same data. :doc:`The threat
    model </threat-model>` has more.

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

    The same fit again has the same answers, at no further charge:

    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> print(f"{ledger.spent:.0%} in {len(ledger.charges())} charge")
    35% in 1 charge
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
                f"key_file={key_file!r} is the ledger itself; name another file."
            )
        if (epsilon is None) != (delta is None):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} are one budget; pass both to "
                "create a ledger, neither to open one."
            )
        there = is_there(self.path)
        if epsilon is not None and delta is not None:
            wanted = RenyiFilter.for_budget(epsilon, delta, orders)
            epsilon, delta = float(epsilon), float(delta)
            if not there:
                limits = list(zip(wanted.orders, wanted.limits, strict=True))
                create_once(self.path, epsilon, delta, limits, now())
        elif not there:
            raise LedgerError(
                f"There is no ledger at {self.path}; pass epsilon= and delta= to "
                "create one, or mend the path."
            )
        with reading(self.path) as file:
            self.epsilon, self.delta, self._identity = file.execute(
                "SELECT epsilon, delta, identity FROM budget"
            ).fetchone()
            limits = file.execute(
                "SELECT renyi_order, value FROM limits ORDER BY renyi_order"
            ).fetchall()
        self.filter = RenyiFilter(*zip(*limits, strict=True))
        if epsilon is not None and (epsilon, delta) != (self.epsilon, self.delta):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} are not the budget of "
                f"{self.path}, which has {self.epsilon!r} and {self.delta!r} for "
                "good; leave both out to use it."
            )
        if orders is not None and (
            np.unique(np.asarray(orders, dtype=np.float64)).tolist()
            != [*self.filter.finite_orders]
        ):
            raise ValueError(
                f"orders={orders!r} are not those of {self.path}, which has "
                f"{self.filter.finite_orders} for good; leave them out to use it."
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open the file to read.

        Yields
        ------
        file : sqlite3.Connection
            All its queries see the same state.

        Raises
        ------
        LedgerError
            If it cannot be read, or is another ledger by now.
        """
        with reading(self.path) as file:
            self._check_identity(file)
            yield file

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open the file to read and write, with nobody else writing.

        Yields
        ------
        file : sqlite3.Connection
            In a transaction, which is on disk once the block has ended.

        Raises
        ------
        LedgerError
            If it cannot be written, or is another ledger by now.
        """
        with writing(self.path) as file:
            self._check_identity(file)
            yield file

    def _check_identity(self, file):
        (identity,) = file.execute("SELECT identity FROM budget").fetchone()
        if identity != self._identity:
            raise LedgerError(
                f"{self.path} is another ledger than the one that was opened there; "
                f"open it anew: PrivacyLedger({str(self.path)!r})."
            )

    @property
    def key(self) -> bytes:
        """The key of the fingerprints. Secret.

        Returns
        -------
        key : bytes
            Read from its file, which is made if it does not exist.

        Raises
        ------
        LedgerError
            If its file cannot be read or made, or holds no key.
        """
        return make_key(self._key_file)

    @property
    def spent(self) -> float:
        """The part of the budget that is spent.

        Returns
        -------
        spent : float
            Between 0 and 1: a share of what costs may add up to, at the order that has
            most left. While all charges are pure, that may be their sum over epsilon.

        Raises
        ------
        LedgerError
            If the file cannot be read, or is another ledger by now.
        """
        with self.reading() as file:
            return max(1 - self._left(file), 0.0)

    def _left(self, file):
        return max(self.filter.left(costs(file)))

    def fits(self, curve: RdpCurve) -> bool:
        """Tell whether a charge would be within the budget now. Charges nothing.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        Returns
        -------
        fits : bool
            Another process may spend what is left before this one does.

        Raises
        ------
        LedgerError
            If the file cannot be read, or is another ledger by now.
        """
        with self.reading() as file:
            return self.filter.admits(self.filter.cost(curve), costs(file))

    def shares(self, curve: RdpCurve) -> tuple[float, float]:
        """Tell what part of the budget a charge takes, and what is left for it.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        Returns
        -------
        share : float
            1 is all of the budget.

        left : float
            At the same order: ``left / share`` times this charge would fit.

        Raises
        ------
        LedgerError
            If the file cannot be read, or is another ledger by now.
        """
        with self.reading() as file:
            return self.filter.shares(self.filter.cost(curve), costs(file))

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
    ) -> int:
        """Enter a cost, before anything is released for it.

        :class:`~sklearn_pate.PATEClassifier` does this by itself. Call it for a release
        by other means, with a worst-case curve: never one that depends on data.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        delta : float
            At which the charge's own epsilon is shown. The budget has its own.

        unit : {"row", "group", "party"}
            Whom the cost protects.

        relation : {"replace-one", "add-remove", "add-remove-or-change"}, default=None
            Against which change of one unit the cost holds, as in
            :class:`~sklearn_pate.PrivacySpent`. None is for "party", which has one
            relation. For "row" and "group" it is refused: name the relation that the
            cost was proved for.

        description : str
            What is released, for auditors: no private value belongs in it.

        dataset : str, default=""
            Which data, by a name that says nothing about them.

        fit : str, default=""
            Which release.

        Returns
        -------
        number : int
            Of the charge. It is on disk.

        Raises
        ------
        BudgetExceededError
            If it does not fit; nothing was charged.

        ValueError
            If the ledger has another unit or relation, `relation` has to be given, or a
            parameter is of another kind.

        LedgerError
            If the file cannot be written; nothing was charged.
        """
        if relation is None:
            relation = _only_relation(unit)
        cost = PrivacyCost(curve, delta, unit, relation, description, dataset, fit)
        with self.writing() as file:
            return enter(self, file, cost)

    def charges(self) -> list[Charge]:
        """List all charges: who spent what on which data.

        Returns
        -------
        charges : list of Charge
            In order; ``pandas.DataFrame(ledger.charges())`` is a table.

        Raises
        ------
        LedgerError
            If the file cannot be read, or is another ledger by now.
        """
        with self.reading() as file:
            return read_entries(file, self.filter)

    def report(self) -> str:
        """Describe the account in words and a table, for auditors.

        Returns
        -------
        report : str
            Several lines: the promise, what is spent of it, and a line a charge.

        Raises
        ------
        LedgerError
            If the file cannot be read, or is another ledger by now.
        """
        with self.reading() as file:
            return write_report(self, file)

    def __repr__(self):
        return (
            f"PrivacyLedger({str(self.path)!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r})"
        )

    def __eq__(self, other):
        if not isinstance(other, PrivacyLedger):
            return NotImplemented
        return (self.path, self._key_file) == (other.path, other._key_file)

    def __hash__(self):
        return hash((self.path, self._key_file))

    # clone() and searches copy parameters: every copy must be the same account.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _only_relation(unit):
    """Return the relation of a unit that has no other."""
    relations = [relation for one, relation in NEIGHBOURS if one == unit]
    if len(relations) != 1:
        raise ValueError(
            f"unit={unit!r} without a relation does not say which change the cost is "
            f"for; pass the relation, too: (unit, relation) is one of {[*NEIGHBOURS]}."
        )
    return relations[0]


def _absolute(name, path):
    try:
        if os.fspath(path):
            return Path(path).resolve()
    except (OSError, RuntimeError, TypeError, ValueError):  # loops of links, NUL
        pass
    raise ValueError(
        f"{name}={path!r} must name a file, such as 'patients.sqlite'; it is made if "
        "it does not exist."
    )
