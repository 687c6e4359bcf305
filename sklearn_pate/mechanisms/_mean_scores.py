"""MeanScores: the mean of the teachers' score functions with Gaussian noise."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.stats import chi2

from sklearn_pate._estimators._progress import steps_of
from sklearn_pate._votes._sums import STEPS, ScoreStep, TeacherScores
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_sum import GaussianSum, StoredSums

# In each step, the share of the squared length of all vectors: of the classes' sum, and
# of scores. Radii of the clipping of scores, in units of the length of labels around
# the classes' shares. Measured on tables, as is the squared signal of a coordinate.
_SHARES, _RADII = (0.03, 0.29, 0.68), (0.5, 0.25)
_SQUARED_SIGNAL, _FEWEST = 12, 5
# Length of the vector of a class, rounded down.
LONGEST = int(np.sqrt(_SHARES[0]) * STEPS)
_BASES = ("linear", "rbf")
Threshold = Literal["auto", "balanced", "accuracy"]
# Beyond this, the rounding of vectors would take more than half of their length.
MOST_VALUES = 250_000
# The first block keeps this share, so that a ranking is never all ties.
_LEAST_KEPT = 0.1
# Coefficients of noise alone pass each test with this probability. Measured on tables:
# with smaller ones, or without a test of two, models that predict well would be called
# noise.
_CHANCE, _FIRST_TESTED = 0.003, (2, 8)


class Estimate(NamedTuple):
    """Estimated mean of the teachers' coefficients. May be published."""

    #: Coefficients with noise, shape (n_coordinates, n_classes - 1).
    coefficients: NDArray[np.float64]
    #: Variance of the noise on the coefficients of each coordinate.
    variances: NDArray[np.float64]
    #: Coefficients without most of their noise.
    shrunk: NDArray[np.float64]
    #: Noisy number of units of each class, and the shares that follow from it.
    classes: NDArray[np.float64]
    shares: NDArray[np.float64]
    #: Clipping and noisy sum of each step of scores.
    steps: list[tuple[ScoreStep, NDArray[np.int64]]]


class MeanScores(GaussianSum):
    """Mean of the teachers' class probabilities.

    The mean is released once, as a model of the class probabilities, and no queries are
    answered. All public rows get soft labels, and noise does not hide a rare class.
    Public rows alone determine a basis of functions. The class probabilities of each
    teacher become coefficients of these functions. The coefficients are clipped to a
    ball around a centre, rounded to whole numbers, added up over teachers, and released
    with noise. The centre of the first step follows from noisy class counts, and the
    centre of the second step is the result of the first step.

    Parameters
    ----------
    basis : {"linear", "rbf"}, default="rbf"
        Functions of the basis. "linear" is the principal components of the public rows
        after the representation. "rbf" adds functions of the distances to cluster means
        of these rows.

    max_coordinates : int, default=500
        Largest number of functions in the basis. With more noise, fewer functions are
        used.

    threshold : {"auto", "balanced", "accuracy"} or float, default="auto"
        With two classes, the probability above which the second class is predicted.
        With "auto", the share of public rows predicted as the second class equals the
        released mean probability of this class. "balanced" is this mean probability,
        and "accuracy" is one half.

    noise_scale : float, default=None
        Standard deviation of the noise on every coordinate of the sum, divided by the
        bound on the length of a teacher's vectors. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise to `epsilon` of the
        fit. The scale must be chosen independently of private data.

    Notes
    -----
    In step 1, each row or group contributes a vector of whole numbers, and in steps 2
    and 3 each teacher contributes one. The length of a vector in step i is at most
    sqrt(s_i) S, with s = (0.03, 0.29, 0.68) and S = 1024. Replacing a row changes the
    sum by at most 2 sqrt(s_i) S, for any centre. The three adaptive Gaussian steps
    together are mu-Gaussian differentially private with mu = 2 / noise_scale (Dong,
    Roth, Su 2022, "Gaussian differential privacy", Corollary 3.3), up to the rounding
    in ``gdp_mu``. The stated epsilon is exact, and does not depend on the numbers of
    public rows, classes and coordinates. The proof is on the page :doc:`/accounting`.

    Aggregation over disjoint shards is from Nissim, Raskhodnikova, Smith (2007),
    "Smooth sensitivity and sampling in private data analysis". Clipping around a
    running estimate is from Biswas, Dong, Kamath, Ullman (2020), "CoinPress: practical
    private mean and covariance estimation". The release of a function by noisy
    coefficients is from Hall, Rinaldo, Wasserman (2013), "Differential privacy for
    functions and functional data".

    Examples
    --------
    >>> from sklearn_pate.mechanisms import MeanScores
    >>> mechanism = MeanScores(noise_scale=4)
    >>> round(mechanism.cost(n_queries=3, n_classes=2).epsilon(1e-5), 2)
    1.99
    """

    released = "scores"
    _has_exact_cost = True

    #: Number of steps.
    n_steps: ClassVar[int] = len(_SHARES)

    def __init__(
        self,
        basis: str = "rbf",
        max_coordinates: int = 500,
        threshold: float | Threshold = "auto",
        *,
        noise_scale: float | None = None,
    ) -> None:
        self.basis = basis
        self.max_coordinates = max_coordinates
        self.threshold = threshold
        self.noise_scale: Any = noise_scale

    def prepared(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        before: Cost | None = None,
    ) -> Self:
        """Return a clone with the noise scale set, for one fit.

        Parameters
        ----------
        epsilon : float, default=None
            Target epsilon of the fit. With None, `noise_scale` is kept.

        delta : float, default=1e-5
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        before : Cost, default=None
            Privacy cost, for the same neighbours, of noisy counts that are released
            before the scores. `epsilon` includes this cost.

        Returns
        -------
        mechanism : MeanScores
            Clone with the noise scale set. All parameters may be published.

        Raises
        ------
        ValueError
            If both or neither of `epsilon` and `noise_scale` are given, or if `epsilon`
            needs too much noise.
        """
        return self._calibrated(epsilon, delta, before)

    def check(self) -> None:
        """Raise ValueError if a parameter other than the noise is out of range."""
        if self.basis not in _BASES:
            raise ValueError(
                f"basis={self.basis!r} of {type(self).__name__} is unknown; use one of "
                f"{[*_BASES]}."
            )
        check_count("max_coordinates", self.max_coordinates)
        check_threshold("threshold", self.threshold)

    def n_coordinates(self, n_teachers: int, n_classes: int) -> list[int]:
        """Compute the numbers of coefficients per class that the noise allows.

        Parameters
        ----------
        n_teachers : int
            Number of teachers.

        n_classes : int
            Number of classes, at least 2.

        Returns
        -------
        n_coordinates : list of int
            Number of functions of the basis in each step that releases coefficients,
            from 5 to `max_coordinates`. Proportional to the square of the ratio of the
            number of teachers to the noise scale.
        """
        check_count("n_teachers", n_teachers)
        check_count("n_classes", n_classes, 2)
        # Radius of a ball over the noise on the mean, if one step had all the cost.
        signal = n_teachers / self.noise_scale
        squared = signal**2 / (_SQUARED_SIGNAL * (n_classes - 1))
        most = min(self.max_coordinates, max(MOST_VALUES // (n_classes - 1), 1))
        return [
            min(most, max(_FEWEST, round(share * squared))) for share in _SHARES[1:]
        ]

    def estimate(
        self,
        scores: TeacherScores,
        class_sum: Callable[[int], NDArray[np.int64]],
        n_coordinates: list[int],
        entry: FitEntry | None = None,
        noise: NoiseSource | None = None,
    ) -> Estimate:
        """Release the mean coefficients of the teachers. Every call has a privacy cost.

        Parameters
        ----------
        scores : TeacherScores
            Coefficients of each teacher. Sensitive.

        class_sum : callable
            Function that adds up the classes of rows, or of groups, as vectors of whole
            numbers with a given largest length. Sensitive.

        n_coordinates : list of int
            Number of functions in each step: no more than the method `n_coordinates`
            returns, and no more than `scores` has.

        entry : FitEntry, default=None
            Ledger entry. The privacy cost is recorded before any noise is drawn, and
            the result of each step is stored before the next step.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        Returns
        -------
        estimate : Estimate
            The released mean. May be published, at the privacy cost that `cost`
            computes.

        Raises
        ------
        LedgerError
            If the ledger cannot be written. Nothing is returned in this case.
        """
        sums = StoredSums(self, entry, noise or NoiseSource())
        n_teachers, shape = scores.n_teachers, scores.shape
        classes = sums.draw(0, partial(class_sum, LONGEST)) / LONGEST
        shares = np.maximum(classes, self._sigma / LONGEST)
        shares /= shares.sum()
        largest = np.sqrt(1 - shares @ shares)
        weighted, precision = np.zeros(shape), np.zeros((shape[0], 1))
        centre, steps = np.zeros(shape), []
        centre[0] = helmert(len(shares)) @ shares
        of_steps = list(zip(_SHARES[1:], _RADII, n_coordinates, strict=True))
        for number, (share, radius, n) in enumerate(
            steps_of("summing scores", of_steps), start=1
        ):
            step = ScoreStep(centre, radius * largest, n, share)
            released = sums.draw(number, partial(scores.sum, step)).reshape(shape)
            steps.append((step, released))
            unit = step.unit / n_teachers
            weight = 1 / (self._sigma * unit) ** 2
            weighted[:n] += weight * (centre + unit * released)[:n]
            precision[:n] += weight
            known = precision > 0
            mean = np.divide(weighted, precision, where=known, out=np.zeros(shape))
            variances = np.divide(1, precision, where=known, out=0 * precision)[:, 0]
            centre = shrunk(mean, variances, least_kept=_LEAST_KEPT)
        return Estimate(mean, variances, centre, classes, shares, steps)

    def _squared_distance(self, n_queries: int) -> float:
        # Vectors v and v' are at most |v| + |v'| apart. A part costs as much as a fit.
        n_fits = max(1, -(-n_queries // self.n_steps))
        return 4 * n_fits

    def _check_noise(self) -> None:
        self.check()
        super()._check_noise()


def shrunk(
    coefficients: NDArray[np.float64],
    variances: NDArray[np.float64],
    first: int = 4,
    least_kept: float = 0.0,
) -> NDArray[np.float64]:
    """Shrink coefficients towards zero by the positive-part James-Stein rule.

    By blocks of `first`, and then twice as many, coordinates after the constant, which
    is kept (Cai 1999, "Adaptive wavelet estimation: a block thresholding and oracle
    inequality approach"). At least `least_kept` of the first block is kept.
    """
    kept = coefficients.copy()
    start, size = 1, first
    while start < len(kept):
        block = slice(start, start + size)
        noise = float(np.mean(variances[block])) * max(kept[block].size - 2, 0)
        squared = float(np.sum(kept[block] ** 2))
        share = max(0.0, 1 - noise / squared) if squared > 0 else 0.0
        kept[block] *= max(share, least_kept) if start == 1 else share
        start, size = start + size, 2 * size
    return kept


def exceeds_noise(
    coefficients: NDArray[np.float64],
    variances: NDArray[np.float64],
    least: float = 0.0,
) -> bool:
    """Check that coefficients after the constant are larger than noise would be.

    By chi-squared tests of the first ones and of all, as few may hold all signal. One
    of the sums must also exceed its mean by at least `least`.
    """
    squared = coefficients[1:] ** 2 / variances[1:, np.newaxis]
    parts = *(squared[:n] for n in _FIRST_TESTED), squared
    return any(
        chi2.sf(part.sum(), part.size) < _CHANCE and part.sum() - part.size >= least
        for part in parts
    )


def check_threshold(name: str, threshold: Any) -> None:
    """Raise ValueError unless a threshold is a probability, or the name of a rule."""
    if isinstance(threshold, str) and threshold in get_args(Threshold):
        return
    if (
        isinstance(threshold, bool)
        or not isinstance(threshold, Real)
        or not 0 < float(threshold) < 1
    ):
        raise ValueError(
            f"{name}={threshold!r} must be 'auto', 'balanced', 'accuracy' or a "
            "probability between 0 and 1, such as 0.3."
        )
