"""The last verb of a fit: what it cost, to be published and not to be published."""

from numbers import Integral

from sklearn_pate.accounting._assumptions import (
    CHOSEN_BLINDLY,
    OTHER_RANDOM_STATE,
    PUBLIC_REPRESENTATION,
    SEEDED,
)
from sklearn_pate.accounting._statement import PrivacyAnalysis, PrivacySpent

__all__ = ["analyse_release", "analyse_votes", "state_privacy"]


def state_privacy(
    pate, mechanism, public, *, n_teachers, n_queries, n_values, representation
):
    """Make the statement that may be published.

    Parameters
    ----------
    pate : TaughtClassifier
        Its `delta` is read, and what it assumes about a ledger.

    mechanism : PricedMechanism
        What answered.

    public : PublicInputs
        Unit and assumptions.

    n_teachers : int
        Number of teachers.

    n_queries : int
        How many questions were paid for.

    n_values : int
        How many values a question has: the number of classes.

    representation : transformer or None
        What teachers saw the rows through.

    Returns
    -------
    spent : PrivacySpent
        Depends on no private value.
    """
    assumptions = (
        *public.assumptions,
        CHOSEN_BLINDLY,
    )
    if representation is not None:
        assumptions = (*assumptions, PUBLIC_REPRESENTATION)
    if pate.ledger is not None and isinstance(pate.random_state, Integral):
        assumptions = (*assumptions, OTHER_RANDOM_STATE)
    if mechanism.noise_seed is not None:
        assumptions = (*assumptions, SEEDED)
    return PrivacySpent(
        epsilon=mechanism.charged_epsilon(n_queries, n_values, pate.delta),
        delta=float(pate.delta),
        unit=public.unit,
        relation=public.relation,
        release="answers",
        mechanism=mechanism.in_one_line(),
        n_teachers=n_teachers,
        n_queries=n_queries,
        assumptions=assumptions,
        curve=mechanism.charged_curve(n_queries, n_values),
    )


def analyse_votes(pate, transcript, mechanism, votes, problems, questions):
    """Compute what the votes that were cast say about the price. Sensitive.

    Parameters
    ----------
    pate : PATEClassifier
        Its `delta` is read.

    transcript : Transcript
        What was asked.

    mechanism : Mechanism
        What answered.

    votes : Votes
        The votes.

    problems : TeacherProblems
        Errors and warnings of teachers.

    questions : Questions
        Whether they depended on answers.

    Returns
    -------
    analysis : PrivacyAnalysis
        Not for publication.
    """
    counts = votes.counts(transcript.rows)
    asked, optimal_epsilon, paper_epsilon = {}, None, None
    if mechanism.needs_probabilities:
        asked["probabilities"] = transcript.probabilities
    else:
        optimal_epsilon = mechanism.optimal_curve(counts).quiet_epsilon(pate.delta)
        paper_epsilon = mechanism.paper_epsilon(counts, pate.delta)
    costs = mechanism._local_costs(counts, **asked)
    return PrivacyAnalysis(
        epsilon=costs.total.quiet_epsilon(pate.delta),
        delta=float(pate.delta),
        curve=costs.total,
        optimal_epsilon=optimal_epsilon,
        paper_epsilon=paper_epsilon,
        # The noise is paid for: to raise or warn here would tell of the votes.
        exceeds_claim=mechanism._exceeds_claim(costs, *counts.shape),
        along_transcript=questions.strategy.adaptive,
        in_ledger=pate.ledger is not None,
        counts=counts,
        mechanism=mechanism,
        n_teachers=votes.shape[0],
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
        data_problems=problems.data,
    )


def analyse_release(pate, spent, mechanism, sums, problems):
    """Keep what teachers said, where the price does not depend on it. Sensitive.

    Parameters
    ----------
    pate : TeacherEnsemble
        Its ledger is looked for.

    spent : PrivacySpent
        The price.

    mechanism : PricedMechanism
        What answered.

    sums : ndarray of int of shape (n_queries, n_classes)
        Without noise.

    problems : TeacherProblems
        Errors and warnings of teachers.

    Returns
    -------
    analysis : PrivacyAnalysis
        Not for publication.
    """
    return PrivacyAnalysis(
        epsilon=spent.epsilon,
        delta=spent.delta,
        curve=spent.curve,
        optimal_epsilon=None,
        paper_epsilon=None,
        exceeds_claim=None,
        along_transcript=False,
        in_ledger=pate.ledger is not None,
        counts=sums,
        mechanism=mechanism,
        n_teachers=spent.n_teachers,
        teacher_failures=problems.failures,
        teacher_warnings=problems.texts(),
        data_problems=problems.data,
    )
