"""Analysis of the votes behind a fit. Sensitive: not for publication."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.plurality._optimal import SanitizedCost


class VoteCosts(NamedTuple):
    """Privacy cost that depends on the votes. Sensitive."""

    epsilon: float
    curve: RdpCurve
    optimal_epsilon: float | None = None
    paper_epsilon: float | None = None
    exceeds_claim: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyAnalysis:
    """Data-dependent privacy analysis of the votes. Sensitive: not for publication.

    All attributes depend on private data. Printing shows no attribute, and a pickled or
    copied estimator does not contain the analysis.

    Parameters
    ----------
    figures : callable
        Function that computes the privacy cost when an epsilon is first read.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    along_transcript : bool
        True if queries depended on earlier answers, or public rows were drawn from
        noisy counts. Each epsilon is then computed for these queries only, as in the
        papers' tables, and is not a bound. The epsilon of ``privacy_spent_`` is a
        bound.

    in_ledger : bool
        True if the cost of the fit was charged to a ledger.

    is_seeded : bool
        True if the noise of the answers was seeded.

    counts : ndarray of int of shape (n_queries, n_classes)
        Votes per class for each query, in the order of ``queried_indices_``.

    mechanism : Mechanism
        Mechanism of the answers.

    n_teachers : int
        Number of teachers.

    class_counts : Mechanism or None
        Release of noisy class counts before the answers.

    teacher_failures : list of (int, str)
        Index and error message of every teacher that failed.

    teacher_warnings : list of (int, str)
        Index of the teacher and text of every warning.

    Notes
    -----
    Like Theorem 6 of Papernot et al. 2018, `optimal_epsilon` uses the probability that
    an answer is not the plurality: it is the tightest such bound. `paper_epsilon` is
    computed by :func:`~sklearn_pate.accounting.bounds.laplace_2017`,
    :func:`~sklearn_pate.accounting.bounds.gaussian_2018` or
    :func:`~sklearn_pate.accounting.bounds.confident_2018`, converted as in the papers.
    `epsilon` and `optimal_epsilon` are converted from Renyi curves by Canonne, Kamath,
    Steinke (2020), Proposition 12. See the page :doc:`Privacy cost of an answer
    </accounting>`.

    Examples
    --------
    >>> import pickle
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.mechanisms import GNMax
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=40),
    ...     epsilon=None,
    ...     classes=[0, 1],
    ... )
    >>> votes = 200 * [[0, 1, 1]]  # 200 parties that agree on three rows
    >>> pate = pate.fit_from_votes([[0.0], [1.0], [2.0]], votes)
    >>> pate.privacy_analysis_
    PrivacyAnalysis(<sensitive: depends on private data, do not publish>)
    >>> bool(pate.privacy_analysis_.epsilon < pate.privacy_spent_.epsilon)
    True
    >>> pate.privacy_analysis_.counts.max(axis=1)
    array([200, 200, 200])
    >>> hasattr(pickle.loads(pickle.dumps(pate)), "privacy_analysis_")
    False
    """

    figures: Callable[[], VoteCosts]
    delta: float
    along_transcript: bool
    in_ledger: bool
    is_seeded: bool
    counts: NDArray[np.int64]
    mechanism: Any
    n_teachers: int
    class_counts: Any
    teacher_failures: list[tuple[int, str]]
    teacher_warnings: list[tuple[int, str]]

    @cached_property
    def _costs(self) -> VoteCosts:
        return self.figures()

    @property
    def epsilon(self) -> float:
        """Data-dependent epsilon of this fit, from the exact cost of the votes.

        At most ``privacy_spent_.epsilon`` for the same number of answers. This epsilon
        is not a guarantee, as it does not hold for other data.

        Returns
        -------
        epsilon : float
            Sensitive.
        """
        return self._costs.epsilon

    @property
    def curve(self) -> RdpCurve:
        """Renyi curve from which `epsilon` is computed.

        `sanitize` cannot release the curve.

        Returns
        -------
        curve : RdpCurve
            Curve by :func:`~sklearn_pate.accounting.local_cost`. Sensitive.
        """
        return self._costs.curve

    @property
    def optimal_epsilon(self) -> float | None:
        """Tightest epsilon by the probability that an answer is not the plurality.

        Returns
        -------
        optimal_epsilon : float or None
            Sensitive; `sanitize` releases this epsilon with noise. None for an
            interactive mechanism, and if the cost does not depend on votes.
        """
        return self._costs.optimal_epsilon

    @property
    def paper_epsilon(self) -> float | None:
        """Epsilon as computed in the mechanism's paper.

        Returns
        -------
        paper_epsilon : float or None
            Sensitive. For few votes, this epsilon may exceed
            ``privacy_spent_.epsilon``, which uses a tighter worst case. None without a
            formula in a paper: for an interactive mechanism, after noisy counts (as for
            balanced votes), and if the cost does not depend on votes.
        """
        return self._costs.paper_epsilon

    @property
    def exceeds_claim(self) -> bool | None:
        """Whether these votes cost more than the worst case that the mechanism claims.

        If True, the mechanism's cost and ``privacy_spent_`` are wrong: publish no
        result of this fit. The cost of one query, or of all queries together, then
        exceeds the claim by more than rounding. A fit gives no error or warning in this
        case, as either would reveal something about the votes.

        Returns
        -------
        exceeds_claim : bool or None
            False proves nothing about the cost of other votes. None if the cost does
            not depend on votes.
        """
        return self._costs.exceeds_claim

    @property
    def plurality(self) -> NDArray[np.intp]:
        """Class with most votes, without noise, for each query.

        Returns
        -------
        plurality : ndarray of int of shape (n_queries,)
            Class indices, the first index for equal counts. Sensitive, as the counts
            have no noise.
        """
        return np.argmax(self.counts, axis=1)

    def sanitize(self, *, confidence: float = 0.975, **release: float) -> SanitizedCost:
        """Release the data-dependent epsilon with noise, at an additional cost.

        The result may be published, but `epsilon` may not. The result describes the
        votes of this fit, as in Papernot et al. 2018, and does not replace
        ``privacy_spent_``. Every call is a separate release: call the method once.

        Parameters
        ----------
        confidence : float, default=0.975
            Probability that the released cost is at least the true cost. At least 0.5.

        **release : float
            `order`, `smoothness` and `noise_scale` of
            :func:`~sklearn_pate.accounting.plurality.sanitize`, all or none. By
            default, all three are chosen from numbers that do not depend on private
            data. A choice by repeated calls voids the guarantee.

        Returns
        -------
        sanitized : SanitizedCost
            Noisy epsilon, which includes the cost of its release.

        Raises
        ------
        ValueError
            If the noise of the answers was seeded, or the queries depended on earlier
            answers or on noisy counts. Also if the fit was charged to a ledger, as the
            budget does not cover this release.

        TypeError
            If the cost does not depend on votes, as with noisy histograms and scores.

        Notes
        -----
        The method is by Papernot et al. 2018, Appendix B, with a smooth sensitivity
        (Nissim, Raskhodnikova, Smith 2007). The cost is corrected, as the cost in the
        paper is not an upper bound: see the page :doc:`Privacy cost of an answer
        </accounting>`.
        """
        if self.in_ledger:
            raise ValueError(
                "This fit was charged to a ledger, whose budget covers the answers "
                "but not the analysis of the votes; publish privacy_spent_ instead, "
                "or fit without a ledger."
            )
        if self.along_transcript:
            raise ValueError(
                "The queries depended on earlier answers or on noisy counts, so that "
                "their data-dependent cost is not a valid bound; publish "
                "privacy_spent_, or fit with public rows and query_strategy='random' "
                "or 'representative'."
            )
        if self.is_seeded:
            raise ValueError(
                "The noise of this fit was seeded, which voids every guarantee; fit "
                "without a seed before publishing a cost."
            )
        if not hasattr(self.mechanism, "sanitized_cost"):
            raise TypeError(
                f"The privacy cost of {type(self.mechanism).__name__} does not depend "
                "on the votes; publish privacy_spent_, without sanitizing it."
            )
        return self.mechanism.sanitized_cost(
            self.counts,
            n_teachers=self.n_teachers,
            delta=self.delta,
            confidence=confidence,
            class_counts=self.class_counts,
            **release,
        )

    def __repr__(self) -> str:
        return "PrivacyAnalysis(<sensitive: depends on private data, do not publish>)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A PrivacyAnalysis is sensitive and cannot be pickled or copied; publish "
            "privacy_spent_ instead."
        )
