"""Analysis of the votes behind a fit. Sensitive: not for publication."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.plurality._neighbouring_votes import SanitizedCost


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
        Computes the privacy cost when it is first read, as this takes time.

    delta : float
        The probability mass that epsilon does not cover.

    along_transcript : bool
        True if queries depended on earlier answers, or on noisy counts that public
        rows were drawn from. Each epsilon is then computed for these queries only, as
        in the papers' tables, and is no bound; ``privacy_spent_`` is one.

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

    teacher_failures : list of (int, str)
        Index and error message of every teacher that failed.

    teacher_warnings : list of (int, str)
        Index of the teacher and text of every warning.

    data_problems : list of str
        Number of rows that were left out, as they have no group id or a label outside
        `classes`. Also the labels in `classes` that no row has.

    Notes
    -----
    `optimal_epsilon` belongs to the kind of bounds of Theorem 6 of Papernot et al.
    2018. `paper_epsilon` is by :func:`~sklearn_pate.accounting.bounds.laplace_2017`,
    :func:`~sklearn_pate.accounting.bounds.gaussian_2018` or
    :func:`~sklearn_pate.accounting.bounds.confident_2018`, converted as in the papers;
    the other two are converted by Canonne, Kamath, Steinke (2020), Proposition 12. See
    :doc:`Privacy cost of an answer </accounting>`.

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
    teacher_failures: list[tuple[int, str]]
    teacher_warnings: list[tuple[int, str]]
    data_problems: list[str] = field(default_factory=list)

    @cached_property
    def _costs(self) -> VoteCosts:
        return self.figures()

    @property
    def epsilon(self) -> float:
        """Data-dependent epsilon of this fit, from the exact cost of the votes.

        At most ``privacy_spent_.epsilon`` for the same number of answers. This epsilon
        is no guarantee, as it does not hold for other data.

        Returns
        -------
        epsilon : float
            Sensitive.
        """
        return self._costs.epsilon

    @property
    def curve(self) -> RdpCurve:
        """Renyi curve behind `epsilon`, which cannot be sanitized.

        Returns
        -------
        curve : RdpCurve
            See :func:`~sklearn_pate.accounting.local_cost`.
        """
        return self._costs.curve

    @property
    def optimal_epsilon(self) -> float | None:
        """Epsilon from the tightest bound by the probability that a plurality loses.

        Returns
        -------
        optimal_epsilon : float or None
            `sanitize` releases it. None for an interactive mechanism.
        """
        return self._costs.optimal_epsilon

    @property
    def paper_epsilon(self) -> float | None:
        """Epsilon as computed in the mechanism's paper.

        Returns
        -------
        paper_epsilon : float or None
            For few votes it may exceed ``privacy_spent_.epsilon``, which uses a tighter
            worst case.
        """
        return self._costs.paper_epsilon

    @property
    def exceeds_claim(self) -> bool | None:
        """Whether these votes cost more than the mechanism claims for any votes.

        If True, the mechanism's cost and ``privacy_spent_`` are wrong: publish no
        result of this fit. One query, or all queries together, exceed the claim by more
        than rounding. A fit neither raises nor warns, as this would reveal something
        about the votes.

        Returns
        -------
        exceeds_claim : bool or None
            False proves nothing about other votes. None if the cost does not depend on
            votes.
        """
        return self._costs.exceeds_claim

    @property
    def plurality(self) -> NDArray[np.intp]:
        """Class with most votes, without noise, for each query.

        Returns
        -------
        plurality : ndarray of int of shape (n_queries,)
            Class indices, the first of equals. Sensitive: they have no noise.
        """
        return np.argmax(self.counts, axis=1)

    def sanitize(self, *, confidence: float = 0.975, **release: float) -> SanitizedCost:
        """Release the data-dependent epsilon with noise, at an additional cost.

        The result may be published; `epsilon` may not. The result is a statement about
        the votes of this fit, as in Papernot et al. 2018. It does not replace
        ``privacy_spent_``. Every call is a separate release: call it once.

        Parameters
        ----------
        confidence : float, default=0.975
            Probability that the released cost is at least the true one, at least 0.5.

        **release : float
            `order`, `smoothness` and `noise_scale` of
            :func:`~sklearn_pate.accounting.plurality.sanitize`, all or none; by default
            they are chosen from public numbers. Trying several voids the guarantee.

        Returns
        -------
        sanitized : SanitizedCost
            The noisy epsilon, which includes the cost of its release.

        Raises
        ------
        ValueError
            If the noise of the answers was seeded, or the queries depended on earlier
            answers or on noisy counts. Also if the fit was charged to a ledger, as the
            budget does not cover this release.

        TypeError
            If noisy histograms were released: their cost does not depend on votes.

        Notes
        -----
        Papernot et al. 2018, Appendix B, with a smooth sensitivity (Nissim,
        Raskhodnikova, Smith 2007) and a corrected cost, as the published one is no
        upper bound: :doc:`Privacy cost of an answer </accounting>`.
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
        return self.mechanism.sanitized_cost(
            self.counts,
            n_teachers=self.n_teachers,
            delta=self.delta,
            confidence=confidence,
            **release,
        )

    def __repr__(self) -> str:
        return "PrivacyAnalysis(<sensitive: depends on private data, do not publish>)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A PrivacyAnalysis is sensitive and cannot be pickled or copied; publish "
            "privacy_spent_ instead."
        )
