"""Plan of a release: its mechanism, its statement, and the numbers of both."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._teachers import TeacherProblems
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._assumptions import SEEDED, Assumption
from sklearn_pate.accounting._gdp import stated_mu
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis, VoteCosts
from sklearn_pate.mechanisms import Transcript
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import AccountedMechanism
from sklearn_pate.mechanisms._two_parts import (
    TwoPartRelease,
    curve_with_counts,
    parts_of,
)

__all__ = [
    "ReleasePlan",
    "analyse_release",
    "analyse_votes",
    "plan_release",
]


@dataclass(frozen=True)
class ReleasePlan:
    """Plan of a release: its mechanism and its statement, before any noise is drawn."""

    #: What is released, with all its parameters: answers, perhaps after counts.
    accounted: AccountedMechanism | TwoPartRelease
    statement: PrivacySpent
    #: 0 for a learner without teachers.
    n_teachers: int
    #: Number of queries, as the mechanism counts them; 0 for a learner without queries.
    n_queries: int
    #: Number of values of a query: the number of classes.
    n_values: int
    #: Returns what is released for another epsilon.
    calibrated: Callable[[float], AccountedMechanism | TwoPartRelease]
    #: Number of draws of noise after that of counts.
    n_steps: int

    @property
    def mechanism(self) -> AccountedMechanism:
        """The mechanism that answers."""
        return parts_of(self.accounted)[1]

    @property
    def counts(self) -> MarginalCounts | None:
        """The release of counts before, if there is one."""
        return parts_of(self.accounted)[0]

    @property
    def n_draws(self) -> int:
        """Number of draws of noise: queries or steps, and one of counts."""
        return self.n_steps + (self.counts is not None)

    def restated(
        self, accounted: AccountedMechanism | TwoPartRelease, n_queries: int
    ) -> PrivacySpent:
        """State the privacy cost of another mechanism or number of queries."""
        other = plan_release(
            accounted,
            self.calibrated,
            delta=self.statement.delta,
            unit=self.statement.unit,
            assumptions=self.statement.assumptions,
            n_teachers=self.n_teachers,
            n_queries=n_queries,
            n_values=self.n_values,
            n_steps=self.n_steps,
        )
        return other.statement


def plan_release(
    accounted: AccountedMechanism | TwoPartRelease,
    calibrated: Callable[[float], AccountedMechanism | TwoPartRelease],
    *,
    delta: float,
    unit: str,
    assumptions: tuple[Assumption, ...],
    n_teachers: int,
    n_queries: int,
    n_values: int,
    n_steps: int | None = None,
) -> ReleasePlan:
    """State the privacy cost of a release by a mechanism.

    `n_steps` is the number of draws of noise where there are no queries.
    """
    if accounted.noise_seed is not None:
        assumptions = (*assumptions, SEEDED)
    counts, _ = parts_of(accounted)
    epsilon = accounted.stated_epsilon(n_queries, n_values, delta)
    statement = PrivacySpent(
        epsilon=epsilon,
        delta=float(delta),
        unit=unit,
        relation=accounted.relation(unit),
        release=accounted.released,
        mechanism=accounted.in_one_line(),
        n_teachers=int(n_teachers) or None,
        n_queries=int(n_queries) or None,
        assumptions=assumptions,
        curve=accounted.stated_curve(n_queries, n_values),
        profile=accounted.stated_profile(n_queries, n_values).thinned(epsilon, delta),
        n_tables=None if counts is None else counts.n_tables,
        mu=stated_mu(accounted._gaussian_mu(n_queries), accounted.noise_seed),
    )
    return ReleasePlan(
        accounted,
        statement,
        n_teachers,
        n_queries,
        n_values,
        calibrated,
        n_queries if n_steps is None else n_steps,
    )


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
        release.counts,
        release.statement,
        counts,
        transcript.probabilities,
    )
    return PrivacyAnalysis(
        # The cost is recorded: an error or a warning here would depend on the votes,
        # and so would the time that it takes.
        figures=figures,
        delta=release.statement.delta,
        # Drawn rows are queries that depend on released counts.
        along_transcript=adaptive or release.counts is not None,
        in_ledger=in_ledger,
        counts=counts,
        mechanism=release.mechanism,
        n_teachers=votes.shape[0],
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
        data_problems=problems.data,
    )


def _costs_of_votes(
    mechanism: Any,
    before: MarginalCounts | None,
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
        optimal = curve_with_counts(before, mechanism.optimal_curve(counts))
        optimal_epsilon = optimal.quiet_epsilon(delta)
        if before is None:  # which no paper has
            paper_epsilon = mechanism.paper_epsilon(counts, delta)
    costs = mechanism._local_costs(counts, **needed)
    curve = curve_with_counts(before, costs.total)
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
        counts=sums,
        mechanism=release.mechanism,
        n_teachers=release.n_teachers,
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
        data_problems=problems.data,
    )
