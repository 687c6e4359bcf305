"""Statement of a release, its ledger entry, and synthetic rows from its counts."""

import secrets
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, Protocol, Self, cast

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from sklearn_pate._aggregation._codes import CodedColumns
from sklearn_pate._aggregation._design import Design
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._fingerprints import estimator_hash, fingerprint
from sklearn_pate._inputs._containers import Table
from sklearn_pate._synthetic._domain import Domain
from sklearn_pate._synthetic._marginals import (
    ClassTables,
    Marginals,
    PrivateMarginals,
    SyntheticRows,
    count_cells,
)
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate._teachers._shards import one_row_of_groups
from sklearn_pate._teachers._training import TeacherProblems
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._cost import Cost, curve_after
from sklearn_pate.accounting._ledger import (
    FitEntry,
    PrivacyLedger,
    fitting_epsilon,
)
from sklearn_pate.accounting._sites import shared_release
from sklearn_pate.accounting._statement import (
    SEEDED,
    Assumption,
    PrivacySpent,
    state_cost,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis, VoteCosts
from sklearn_pate.exceptions import LedgerError, PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms import PluralityMechanism, Transcript
from sklearn_pate.mechanisms._noise import NoiseSource, as_drawn
from sklearn_pate.mechanisms._noisy_sum import (
    ClassCounts,
    MarginalCounts,
    StoredSums,
    TwoPartRelease,
    facts_of,
    over_sites,
)
from sklearn_pate.mechanisms._plurality import Mechanism, Response

# Parameters without an effect on the release.
WITHOUT_CONSEQUENCE = ("ledger", "memory", "n_jobs", "verbose")
#: Place of the counts among the stored answers of a fit.
OF_COUNTS = -1
# Whole numbers that hold the hash of the drawn rows.
_N_WORDS = 2
# Fits without a ledger in this process, by a keyed fingerprint of their private rows.
_KEY_OF_FITS, _FITS = secrets.token_bytes(32), Counter[str]()
_NOTES_FITS = ContextVar("notes fits", default=True)


# The release of counts before it, for an epsilon; None if there is none.
CountsFor = Callable[[float | None], MarginalCounts | ClassCounts | None]
# Of the squared mu, for the shares of the classes, as in MeanScores.
_SHARE_OF_CLASSES = 0.03


@dataclass(frozen=True, kw_only=True)
class ReleasePlan:
    """Plan of a release: its mechanism and its statement, before any noise is drawn.

    `replace` with another `target` plans the same release for another epsilon.
    """

    #: Returns the mechanism with its noise for `epsilon`, after the cost `before`.
    prepare: Callable[..., Mechanism]
    counts_for: CountsFor = lambda _: None
    #: Epsilon that the noise is calibrated to; None where the noise is given.
    target: float | None
    delta: float
    unit: str
    assumptions: tuple[Assumption, ...]
    #: Number of teachers, or its rule by the mechanism; 0 for a learner without them.
    teachers: int | Callable[[Any], int] = 0
    #: Number of queries, as the mechanism counts them; 0 for a release without queries.
    n_queries: int = 0
    #: Number of parts of a query, which the statement counts as queries.
    n_parts: int = 1
    #: Number of values of a query: the number of classes.
    n_values: int
    #: Number of draws of noise after that of counts, where there are no queries.
    n_steps: int = 0
    #: What is released, with all its parameters: answers, perhaps after counts.
    accounted: Mechanism = field(init=False)
    statement: PrivacySpent = field(init=False)

    def __post_init__(self) -> None:
        counts, before = self.counts_for(self.target), None
        if counts is not None:
            before = counts.cost(unit=self.unit)
        accounted = mechanism = self.prepare(epsilon=self.target, before=before)
        if counts is not None:
            accounted = TwoPartRelease(counts, mechanism)
        accounted, assumptions = over_sites(accounted, self.assumptions)
        teachers = (
            self.teachers(mechanism) if callable(self.teachers) else self.teachers
        )
        cost = accounted.cost(self.n_queries, self.n_values, unit=self.unit)
        cost, assumptions = as_drawn(cost, assumptions)
        statement = state_cost(
            cost,
            self.delta,
            release=accounted.released,
            mechanism=accounted.in_one_line(),
            assumptions=assumptions,
            n_teachers=int(teachers) or None,
            n_queries=int(self.n_queries * self.n_parts) or None,
            **facts_of(counts),
        )
        object.__setattr__(self, "accounted", accounted)
        object.__setattr__(self, "statement", statement)

    @classmethod
    def of_design(
        cls,
        design: Design,
        *,
        delta: float,
        n_classes: int,
        counts_for: CountsFor,
        **given: Any,
    ) -> Self:
        """Calibrate the mechanism of a design, and state its privacy cost."""

        def with_classes(epsilon: float | None) -> MarginalCounts | ClassCounts | None:
            counts = counts_for(epsilon)
            if counts is None and design.balanced:
                counts = ClassCounts().for_share(
                    _SHARE_OF_CLASSES, cast(float, epsilon), delta
                )
            return counts

        numbers = {}
        if isinstance(design.mechanism, PluralityMechanism):
            numbers = {
                "n_teachers": design.n_teachers,
                "n_queries": design.n_queries,
                "n_classes": n_classes,
            }
        return cls(
            prepare=partial(design.mechanism.prepared, delta=delta, **numbers),
            counts_for=with_classes,
            delta=delta,
            teachers=design.n_teachers,
            n_queries=design.n_queries,
            n_values=n_classes,
            n_steps=0 if design.n_queries else design.mechanism.n_steps,
            **given,
        )

    @property
    def counts(self) -> MarginalCounts | ClassCounts | None:
        """The release of counts before, if there is one."""
        return self.accounted.parts[0]

    @property
    def mechanism(self) -> Any:
        """The mechanism that answers."""
        return self.accounted.parts[1]

    @property
    def n_teachers(self) -> int:
        """Number of teachers; 0 for a learner without teachers."""
        return self.statement.n_teachers or 0

    @property
    def n_draws(self) -> int:
        """Number of draws of noise: queries or steps, and one of counts."""
        return (self.n_queries or self.n_steps) + (self.counts is not None)

    def noise(self) -> NoiseSource:
        """Return a source of noise of the kind that the statement describes."""
        return NoiseSource().as_stated(self.statement.assumptions)


def analyse_votes(
    release: ReleasePlan,
    votes: Votes,
    transcript: Transcript,
    problems: TeacherProblems,
    *,
    adaptive: bool,
    in_ledger: bool,
) -> PrivacyAnalysis:
    """Prepare the privacy cost that depends on the votes. Sensitive."""
    counts = votes.counts(transcript.rows)
    figures = partial(
        _costs_of_votes,
        release.mechanism,
        release.counts and release.counts.cost(),
        release.statement,
        counts,
        transcript.probabilities,
    )
    return PrivacyAnalysis(
        # The cost is recorded: an error or a warning here would depend on the votes,
        # and so would the time that it takes.
        figures=figures,
        delta=release.statement.delta,
        along_transcript=adaptive,
        in_ledger=in_ledger,
        is_seeded=SEEDED in release.statement.assumptions,
        counts=counts,
        mechanism=release.mechanism,
        n_teachers=votes.shape[0],
        class_counts=release.counts,
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
    )


def _costs_of_votes(
    mechanism: Any,
    before: Cost | None,
    spent: PrivacySpent,
    counts: NDArray[np.int64],
    probabilities: NDArray[np.float64] | None,
) -> VoteCosts:
    """Compute the privacy cost of answers at these votes. Sensitive."""
    delta = spent.delta
    needed, optimal_epsilon, paper_epsilon = {}, None, None
    if mechanism.needs_probabilities:
        needed["probabilities"] = probabilities
    else:
        optimal = curve_after(before, mechanism.optimal_curve(counts))
        optimal_epsilon = optimal.quiet_epsilon(delta)
        if before is None:  # which no paper has
            paper_epsilon = mechanism.paper_epsilon(counts, delta)
    costs = mechanism._local_costs(counts, **needed)
    curve = curve_after(before, costs.total)
    return VoteCosts(
        # What holds for all votes holds for these.
        epsilon=min(curve.quiet_epsilon(delta), spent.epsilon),
        curve=curve,
        optimal_epsilon=optimal_epsilon,
        paper_epsilon=paper_epsilon,
        exceeds_claim=mechanism._exceeds_claim(costs, *counts.shape),
    )


def analyse_release(
    release: ReleasePlan,
    sums: NDArray[np.int64],
    problems: TeacherProblems,
    *,
    in_ledger: bool,
) -> PrivacyAnalysis:
    """Keep what teachers reported of a release whose cost does not depend on votes."""
    spent = release.statement
    return PrivacyAnalysis(
        figures=partial(VoteCosts, spent.epsilon, spent.curve),
        delta=spent.delta,
        along_transcript=False,
        in_ledger=in_ledger,
        is_seeded=SEEDED in release.statement.assumptions,
        counts=sums,
        mechanism=release.mechanism,
        n_teachers=release.n_teachers,
        class_counts=release.counts,
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
    )


class Releaser(Protocol):
    """A classifier whose release goes into a ledger."""

    ledger: PrivacyLedger | None
    epsilon: float | None
    random_state: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters."""


def open_entry(
    estimator: Releaser,
    release: ReleasePlan,
    private: object,
    public: object,
    features: NDArray[np.float64] | None = None,
) -> FitEntry | None:
    """Open the ledger entry of a fit, None without a ledger.

    Nothing is recorded before the first noise is drawn. Raises BudgetExceededError if
    the cost exceeds the budget. `private` is identified by a keyed fingerprint;
    `public` is all public data that decide the answers. `features` are numbers that
    several sites have to compute alike from public rows.
    """
    ledger, spent = estimator.ledger, release.statement
    shared = shared_release()
    if shared is not None:
        return shared.open_entry(spent, release.n_draws, private, features)
    if ledger is None:
        if private is not None:  # not hashed on a cluster
            _note_fit(private)
        return None
    data = cast(str, joblib.hash(private))
    queries = counted(spent.n_queries, "query")
    teachers = counted(spent.n_teachers, "teacher")
    released = {
        "scores": f"mean scores of {teachers}",
        "newton": f"logistic regression from {spent.unit}s",
    }.get(spent.release, f"{queries} to {teachers}")
    if spent.n_tables is not None:
        released = (
            f"noisy counts of {counted(spent.n_tables, 'column')}, then {released}"
        )
    if spent.n_coded is not None:
        columns = counted(spent.n_coded, "column")
        released = f"noisy counts of the codes in {columns}, then {released}"
    return FitEntry.of_statement(
        ledger,
        spent,
        release.n_draws,
        description=f"{released}, {spent.mechanism}",
        dataset=fingerprint(ledger.key, "data", data),
        fit=_name_of_fit(estimator, ledger.key, data, public, spent),
        remedy=lambda: _remedy(ledger, estimator.epsilon, release),
    )


def record_release(
    ledger: PrivacyLedger | None, spent: PrivacySpent, private: object
) -> None:
    """Record the cost of a release before its noise, or raise BudgetExceededError.

    Every release is a new one, also when the same fit runs again.
    """
    if ledger is None:
        _note_fit(private)
        return
    data = joblib.hash(private)
    ledger.charge(
        spent.curve,
        delta=spent.delta or ledger.delta,
        unit=spent.unit,
        relation=spent.relation,
        description=spent.mechanism,
        dataset=fingerprint(ledger.key, "data", data),
        fit=secrets.token_hex(32),
        profile=spent.profile,
    )


@contextmanager
def accounted_elsewhere() -> Iterator[None]:
    """Fit without a ledger where another statement covers it, or none is needed."""
    token = _NOTES_FITS.set(False)
    try:
        yield
    finally:
        _NOTES_FITS.reset(token)


def _note_fit(private: Any) -> None:
    """Warn, once in a process, of a second fit of the same rows without a ledger."""
    if not _NOTES_FITS.get():
        return
    try:
        name = fingerprint(_KEY_OF_FITS, joblib.hash(private))
    except Exception:  # no object of a private row makes a fit fail
        return
    n_repeated = _FITS.total() - len(_FITS)
    _FITS[name] += 1
    if n_repeated == 0 and _FITS[name] == 2:
        warn_user(
            "2 fits of the same private rows in this process have no ledger. Each "
            "privacy_spent_ covers one fit only, and their costs add up. Pass "
            "ledger=PrivacyLedger(path, epsilon=..., delta=...) to all fits, or use "
            "PrivateSearchCV for a search.",
            PrivacyLeakWarning,
        )


def _name_of_fit(
    estimator: Releaser, key: bytes, data: str, public: object, spent: PrivacySpent
) -> str:
    """Compute a keyed fingerprint of everything that decides the answers."""
    # None or a RandomState draws other shards and teachers in the next fit.
    if isinstance(estimator.random_state, Integral):
        parameters = clone(estimator).get_params(deep=False)
        for name in WITHOUT_CONSEQUENCE:
            parameters.pop(name, None)
        parameters["random_state"] = int(estimator.random_state)
        try:
            of_parameters = estimator_hash(type(estimator), parameters)
        except Exception:  # no hash, so that every fit is a new one
            pass
        else:
            version = sys.modules["sklearn_pate"].__version__
            of_cost = joblib.hash((spent.curve, spent.to_dict(), version))
            of_public = joblib.hash(public)
            return fingerprint(key, "fit", data, of_public, of_parameters, of_cost)
    return secrets.token_hex(32)


def _remedy(ledger: PrivacyLedger, epsilon: float | None, release: ReleasePlan) -> str:
    """Return advice for a fit that exceeds the budget."""
    of_search = (
        "Each fit of a search is charged. Before a search, "
        "sklearn_pate.inspection.plan(search, X, y, X_public=...) compares the "
        "cost of all its fits with the budget, and suggests an epsilon."
    )
    advice = [_what_fits(ledger, epsilon, release)]
    return " ".join([*advice, of_search] if ledger.entries() else advice).strip()


def _what_fits(
    ledger: PrivacyLedger, epsilon: float | None, release: ReleasePlan
) -> str:
    """Suggest a parameter whose cost is within the budget."""
    spent, n_queries = release.statement, release.n_queries
    if np.isinf(spent.epsilon):
        return ""
    if ledger.spent >= 1:
        return "This ledger has no budget left."
    if epsilon is None and not n_queries:
        return "Use more noise."
    if epsilon is None:

        def exceeds(n_queries: int) -> bool:
            other = release.accounted.cost(n_queries, release.n_values, unit=spent.unit)
            profile = other.profile.thinned(other.epsilon(spent.delta), spent.delta)
            return not ledger.fits(other.curve, profile)

        n_affordable = bisect_left(range(1, n_queries), True, key=exceeds)
        if n_affordable == 0:
            return (
                "With this noise, not even one query fits into the remaining "
                "budget; use more noise."
            )
        return f"n_queries={n_affordable} would fit this budget; or use more noise."

    def excess(epsilon: float) -> float:
        other = replace(release, target=epsilon).statement
        if ledger.fits(other.curve, other.profile):
            return 0.0
        share, left = ledger.budget_fractions(other.curve)
        return share / left if left > 0 else np.inf

    largest = min(epsilon, ledger.epsilon)
    affordable = fitting_epsilon(largest, excess)
    if affordable is None:
        return f"Almost no budget is left; an epsilon below {largest / 10:g} may fit."
    return f"epsilon={affordable:g} would fit this budget."


def draw_synthetic_rows(
    synthetic: PrivateMarginals,
    private: PrivateRows,
    classes: NDArray[Any],
    domain: Domain,
    release: ReleasePlan,
    entry: FitEntry | None,
    seed: int,
    *,
    equal_classes: bool,
) -> tuple[Marginals, SyntheticRows]:
    """Record the cost, release noisy counts, and draw rows from them.

    With a ledger entry, counts are stored before they are used, together with a hash of
    the rows, and never drawn twice on one entry.
    """
    mechanism = cast(MarginalCounts, release.counts)
    # The number of rows is public where rows are replaced.
    n_rows = private.n_rows if release.statement.relation == "replace-one" else None

    def read(
        counts: NDArray[np.int64],
    ) -> tuple[Marginals, SyntheticRows, NDArray[np.int64]]:
        marginals = Marginals(
            domain, len(classes), synthetic.by_class, counts, n_rows, mechanism.sigma
        )
        rows = marginals.draw(synthetic.n_rows, seed, equal_classes=equal_classes)
        return marginals, rows, _hash(rows.X)

    stored = None if entry is None else entry.stored().get(OF_COUNTS)
    if stored is None:
        X, codes = counted_rows(private, seed)
        exact = count_cells(domain, X, codes, len(classes), by_class=synthetic.by_class)
        noise = release.noise()
        if entry is not None:
            # Only on an entry without any draw: another one has its counts.
            entry.open(release.n_draws)
        marginals, rows, digest = read(mechanism.release(exact, noise))
        if entry is None:
            return marginals, rows
        drawn = np.concatenate([marginals.counts, digest])[np.newaxis]
        kept = entry.keep(
            np.array([OF_COUNTS]), Response(np.array([-1]), 0, histograms=drawn)
        )
        stored = kept[OF_COUNTS]
    content = np.asarray(stored.histogram)
    marginals, rows, digest = read(content[:-_N_WORDS])
    if not np.array_equal(digest, content[-_N_WORDS:]):
        raise LedgerError(
            "The ledger holds answers about synthetic rows that this run cannot draw "
            "again, as numpy or a dataframe library has another version. Install the "
            "earlier version, or use another random_state, which makes a new fit with "
            "its own privacy cost."
        )
    return marginals, rows


def count_codes(
    public: PublicInputs,
    private: PrivateRows,
    release: ReleasePlan,
    entry: FitEntry | None,
    seed: int,
) -> tuple[PublicInputs, dict[Any, NDArray[np.int64]]]:
    """Record the cost, release noisy counts of codes, and add what follows from them.

    With a ledger entry, counts are stored before they are used, and never drawn twice.
    """
    coded, n_classes = cast(CodedColumns, public.coded), len(public.classes)
    mechanism = cast(MarginalCounts, release.counts)

    def count() -> NDArray[np.int64]:
        return coded.count(*counted_rows(private, seed), n_classes)

    drawn = StoredSums(mechanism, entry, release.noise()).draw(OF_COUNTS, count)
    tables = coded.tables(drawn, n_classes)
    # The number of rows is public where rows are replaced.
    n_rows = private.n_rows if release.statement.relation == "replace-one" else None
    released = ClassTables.of_counts(tables, mechanism.sigma, n_rows)
    log_odds = coded.log_odds(tables, released)
    public = replace(public, log_odds=log_odds, class_shares=released.shares)
    return public, dict(zip(coded.by_name, tables, strict=True))


def tables_by_name(marginals: Marginals) -> dict[Any, NDArray[np.int64]]:
    """Return the noisy tables by the name of their column, or by its number."""
    return dict(zip(marginals.names, marginals.tables.values(), strict=True))


def counted_rows(private: PrivateRows, seed: int) -> tuple[Table, NDArray[np.intp]]:
    """Return all rows and class indices, or those of one row of each group."""
    X, codes = private.X, private.codes
    if private.ids is None or private.group_of_row is None:
        return X, codes
    labelled = np.where(codes >= 0, private.group_of_row, -1)
    rows = one_row_of_groups(private.ids, labelled, seed)
    return _safe_indexing(X, rows), codes[rows]


def _hash(rows: Table) -> NDArray[np.int64]:
    """Hash the values of rows, in whatever container."""
    columns = [
        np.asarray(_safe_indexing(rows, column, axis=1)).tolist()
        for column in range(rows.shape[1])
    ]
    return np.frombuffer(bytes.fromhex(joblib.hash(columns)), dtype="<i8")
