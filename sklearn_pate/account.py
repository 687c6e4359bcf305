"""The last verb of a fit: what it cost, to be published and not to be published."""

from numbers import Integral

from sklearn_pate.accounting.statement import NEIGHBOURS, PrivacyAnalysis, PrivacySpent

__all__ = ["analyse_votes", "state_privacy"]


def state_privacy(pate, oracle, mechanism, votes, public, questions):
    """Make the statement that may be published.

    Parameters
    ----------
    pate : PATEClassifier
        Its `delta` is read.

    oracle : Oracle
        Holds the price, which was fixed before the first question.

    mechanism : Mechanism
        What answered.

    votes : Votes
        Their number of teachers is read.

    public : PublicInputs
        Unit and assumptions.

    questions : Questions
        How many were paid for.

    Returns
    -------
    spent : PrivacySpent
        Depends on no private value.
    """
    assumptions = (
        *public.assumptions,
        "all parameters were chosen without a look at private data",
    )
    if questions.representation is not None:
        assumptions = (
            *assumptions,
            "the representation makes each row's features from that row alone",
        )
    if pate.ledger is not None and isinstance(pate.random_state, Integral):
        assumptions = (
            *assumptions,
            "rows that were prepared in another way were fitted with another "
            "random_state",
        )
    if mechanism.noise_seed is not None:
        assumptions = (*assumptions, "the noise was seeded, which voids privacy")
    return PrivacySpent(
        epsilon=oracle.curve.to_epsilon(pate.delta),
        delta=float(pate.delta),
        unit=public.unit,
        neighbours=NEIGHBOURS[public.unit],
        mechanism=mechanism.in_one_line(),
        n_teachers=votes.shape[0],
        n_queries=questions.n_queries,
        assumptions=assumptions,
        curve=oracle.curve,
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
    curve = mechanism.local_curve(counts, **asked)
    return PrivacyAnalysis(
        epsilon=curve.quiet_epsilon(pate.delta),
        delta=float(pate.delta),
        curve=curve,
        optimal_epsilon=optimal_epsilon,
        paper_epsilon=paper_epsilon,
        along_transcript=questions.strategy.adaptive,
        in_ledger=pate.ledger is not None,
        counts=counts,
        mechanism=mechanism,
        n_teachers=votes.shape[0],
        teacher_failures=problems.failures,
        teacher_warnings=problems.warnings,
    )
