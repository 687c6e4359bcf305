"""Plan of a release: its mechanism, its statement, and the numbers of both."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._teachers import TeacherProblems
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._assumptions import SEEDED, Assumption
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.mechanisms import Transcript
from sklearn_pate.mechanisms._mechanism import AccountedMechanism

__all__ = [
    "ReleasePlan",
    "analyse_release",
    "analyse_votes",
    "plan_release",
]


@dataclass(frozen=True)
class ReleasePlan:
    """Plan of a release: its mechanism and its statement, before any noise is drawn."""

    #: The mechanism with all its parameters.
    mechanism: AccountedMechanism
    statement: PrivacySpent
    n_teachers: int
    #: Number of queries, as the mechanism counts them.
    n_queries: int
    #: Number of values of a query: the number of classes.
    n_values: int
    #: Returns the mechanism for another epsilon.
    calibrated: Callable[[float], AccountedMechanism]

    def restated(self, mechanism: AccountedMechanism, n_queries: int) -> PrivacySpent:
        """State the privacy cost of another mechanism or number of queries."""
        other = plan_release(
            mechanism,
            self.calibrated,
            delta=self.statement.delta,
            unit=self.statement.unit,
            assumptions=self.statement.assumptions,
            n_teachers=self.n_teachers,
            n_queries=n_queries,
            n_values=self.n_values,
        )
        return other.statement


def plan_release(
    mechanism: AccountedMechanism,
    calibrated: Callable[[float], AccountedMechanism],
    *,
    delta: float,
    unit: str,
    assumptions: tuple[Assumption, ...],
    n_teachers: int,
    n_queries: int,
    n_values: int,
) -> ReleasePlan:
    """State the privacy cost of a release by a mechanism."""
    if mechanism.noise_seed is not None:
        assumptions = (*assumptions, SEEDED)
    epsilon = mechanism.stated_epsilon(n_queries, n_values, delta)
    statement = PrivacySpent(
        epsilon=epsilon,
        delta=float(delta),
        unit=unit,
        relation=mechanism.relation(unit),
        release=mechanism.released,
        mechanism=mechanism.in_one_line(),
        n_teachers=int(n_teachers),
        n_queries=int(n_queries),
        assumptions=assumptions,
        curve=mechanism.stated_curve(n_queries, n_values),
        profile=mechanism.stated_profile(n_queries, n_values).thinned(epsilon, delta),
    )
    return ReleasePlan(
        mechanism, statement, n_teachers, n_queries, n_values, calibrated
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
    """Compute the privacy cost that depends on the votes. Sensitive."""
    mechanism, spent = release.mechanism, release.statement
    delta = spent.delta
    counts = votes.counts(transcript.rows)
    needed, optimal_epsilon, paper_epsilon = {}, None, None
    if mechanism.needs_probabilities:
        needed["probabilities"] = transcript.probabilities
    else:
        optimal_epsilon = mechanism.optimal_curve(counts).quiet_epsilon(delta)
        paper_epsilon = mechanism.paper_epsilon(counts, delta)
    costs = mechanism._local_costs(counts, **needed)
    return PrivacyAnalysis(
        # What holds for all votes holds for these.
        epsilon=min(costs.total.quiet_epsilon(delta), spent.epsilon),
        delta=delta,
        curve=costs.total,
        optimal_epsilon=optimal_epsilon,
        paper_epsilon=paper_epsilon,
        # The cost is recorded: an error or a warning here would depend on the votes.
        exceeds_claim=mechanism._exceeds_claim(costs, *counts.shape),
        along_transcript=adaptive,
        in_ledger=in_ledger,
        counts=counts,
        mechanism=mechanism,
        n_teachers=votes.shape[0],
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
        data_problems=problems.data,
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
        epsilon=spent.epsilon,
        delta=spent.delta,
        curve=spent.curve,
        optimal_epsilon=None,
        paper_epsilon=None,
        exceeds_claim=None,
        along_transcript=False,
        in_ledger=in_ledger,
        counts=sums,
        mechanism=release.mechanism,
        n_teachers=release.n_teachers,
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
        data_problems=problems.data,
    )
