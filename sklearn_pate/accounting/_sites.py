"""Context of a release that several sites compute together, each with its own rows."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._statement import PrivacySpent


def noise_ratio(n_sites: int, n_colluding: int) -> float:
    """Return the noise of all sites over that of the sites which are counted."""
    return math.sqrt(n_sites / (n_sites - n_colluding))


@dataclass(frozen=True)
class SharedRelease:
    """What a fit or a measurement here has in common with other sites."""

    n_sites: int
    #: Number of sites whose share of the noise is not counted.
    n_colluding: int
    #: Public number of rows of all sites, None where groups are the unit.
    n_rows: int | None
    #: False for the collector of the sums, who has made-up rows alone.
    has_rows: bool
    #: Returns the entry, by the statement, the number of draws, the private rows, and
    #: numbers that all sites have to compute alike from public rows.
    open_entry: Callable[[PrivacySpent, int, Any, Any], Any]

    @property
    def wider(self) -> float:
        """Ratio of the noise of all sites to that which is counted."""
        return noise_ratio(self.n_sites, self.n_colluding)

    def in_equal_parts(self, n_teachers: int, *, exact: bool) -> int:
        """Return a number of teachers that is the same at each site.

        Raises ValueError if the number is `exact`, and cannot be split.
        """
        if exact and n_teachers % self.n_sites:
            raise ValueError(
                f"n_teachers={n_teachers} cannot be split evenly over {self.n_sites} "
                "sites; use a multiple of their number."
            )
        return max(n_teachers // self.n_sites, 1) * self.n_sites

    def n_teachers_here(self, n_teachers: int) -> int:
        """Return the number of teachers of this site, of so many in all."""
        return n_teachers // self.n_sites if self.has_rows else 0


_SHARED: ContextVar[SharedRelease | None] = ContextVar("shared release", default=None)
#: Returns the release that is computed together with other sites, None without any.
shared_release = _SHARED.get


@contextmanager
def sharing(release: SharedRelease) -> Iterator[None]:
    """Compute all sums in a block together with other sites."""
    token = _SHARED.set(release)
    try:
        yield
    finally:
        _SHARED.reset(token)


class SiteEntry(FitEntry):
    """Entry of a site for all its replies, which is charged once.

    A reply that was not stored was not sent: it costs nothing if a process was killed
    before.
    """

    def check(self) -> None:
        """Raise unless the cost is recorded, or within the budget. No charge."""
        with self._ledger.reading() as file:
            is_recorded = self._recorded(file) is not None
        if not is_recorded:
            super().check()

    def open(self, n_new: int) -> int:
        """Record the cost of the whole release on disk, before the first reply."""
        with self._advised(), self._ledger.writing() as file:
            self._number = self._recorded(file)
            if self._number is None:
                self._number = self._enter(file, pending=False)
        return 0

    def _recorded(self, file: Connection) -> int | None:
        """Return the number of this entry in the ledger, None before it is charged."""
        found = file.execute(
            "SELECT charge FROM draws WHERE fit = ?", (self._cost.fit,)
        ).fetchone()
        return None if found is None else found[0]

    def check_rows(self) -> None:
        """Raise ValueError if the private rows are not those of the first reply."""
        with self._ledger.reading() as file:
            number = self._recorded(file)
            if number is not None:
                [dataset] = file.execute(
                    "SELECT dataset FROM charges WHERE id = ?", (number,)
                ).fetchone()
                if dataset != self._cost.dataset:
                    raise ValueError(
                        "X, y or groups differ from those of this site's first reply "
                        "in the study; pass the same rows in the same order."
                    )
