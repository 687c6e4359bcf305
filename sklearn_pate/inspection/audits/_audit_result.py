"""Result of an audit."""

from dataclasses import dataclass

from sklearn_pate._base._terminal import write_lower_bound
from sklearn_pate.accounting._calibrate import is_positive
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.accounting.plurality._exact import ROUNDING

__all__ = ["AuditResult", "check_confidence"]


@dataclass(frozen=True)
class AuditResult:
    """Result of an audit. Sensitive if the audit used sensitive data.

    Parameters
    ----------
    epsilon_lower : float
        Lower bound of epsilon at `delta`, at the stated confidence. 0 if the audit
        found nothing.

    epsilon_claimed : float
        Claimed epsilon at the same `delta`.

    delta : float
        Probability mass that epsilon does not cover.

    confidence : float
        Probability that an audit of a true claim does not contradict it.

    evidence : str
        Observations, in numbers.

    exact_share : float, default=None
        Exact Renyi cost of the audited votes as a share of the claimed Renyi cost of
        all votes, at the order where it is largest. None if it was not computed, as
        where the mechanism does not state the distribution of its answers.

    answers_follow_law : bool, default=None
        Whether the answers have the distribution that the mechanism states, from which
        the exact cost is computed. None if it was not tested. True at a false
        distribution that differs too little for the number of trials.

    Notes
    -----
    `epsilon_lower` comes from exact binomial bounds (Clopper and Pearson 1934), or from
    Theorem 5.2 of Steinke, Nasr, Jagielski (2023): see
    :func:`~sklearn_pate.inspection.audit_mechanism`,
    :func:`~sklearn_pate.inspection.audit_neighbours` and
    :func:`~sklearn_pate.inspection.audit_canaries`, which return it.

    Examples
    --------
    >>> from sklearn_pate.inspection import audit_mechanism
    >>> from sklearn_pate.mechanisms import GumbelMax
    >>> result = audit_mechanism(GumbelMax(c=0.5), [5, 1], [4, 2], n_trials=2_000)
    >>> result.contradicted
    False
    >>> result.epsilon_lower < result.epsilon_claimed
    True
    >>> print(result)
    The audit does not contradict the claim of epsilon=0.995 at delta=1e-05: with...
    """

    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    confidence: float
    evidence: str
    exact_share: float | None = None
    answers_follow_law: bool | None = None

    @property
    def cost_is_wrong(self) -> bool:
        """Whether the exact cost of the audited votes is above the claim.

        Returns
        -------
        wrong : bool
            True shows a defect with certainty, as rounding is allowed for.
        """
        return self.exact_share is not None and self.exact_share > 1 + ROUNDING

    @property
    def contradicted(self) -> bool:
        """Whether the claim is below the lower bound or the exact cost, or unfounded.

        Returns
        -------
        contradicted : bool
            True shows a defect: with certainty if `cost_is_wrong`; except for one audit
            in a billion if `answers_follow_law` is False; else at the stated
            confidence: of audits of true claims, one in ``1 / (1 - confidence)`` is
            True by chance. False proves nothing.
        """
        return (
            self.cost_is_wrong
            or self.answers_follow_law is False
            or self.epsilon_lower > self.epsilon_claimed
        )

    def __str__(self) -> str:
        found = "contradicts" if self.contradicted else "does not contradict"
        text = (
            f"The audit {found} the claim of epsilon="
            f"{write_epsilon(self.epsilon_claimed)} at delta={self.delta:g}: with "
            f"confidence {self.confidence:g}, epsilon is at least "
            f"{write_lower_bound(self.epsilon_lower)} ({self.evidence})"
        )
        if self.cost_is_wrong:
            text += (
                f", and the exact Renyi cost of these votes is {self.exact_share:.3g} "
                "times the claimed Renyi cost of all votes"
            )
        if self.answers_follow_law is False:
            text += (
                ", and the answers do not have the distribution that the mechanism "
                "states"
            )
        return text + "."


def check_confidence(confidence: float, delta: float) -> None:
    """Raise ValueError unless both probabilities are in range."""
    check_delta(delta)
    if not is_positive(confidence) or not 0.5 <= confidence < 1:
        raise ValueError(
            f"confidence={confidence!r} must be a probability from 0.5 to below 1, "
            "such as 0.9999."
        )
