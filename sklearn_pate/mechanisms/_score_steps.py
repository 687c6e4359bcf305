"""ScoreSteps: logistic regression in a public basis, by steps with Gaussian noise."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import softmax

from sklearn_pate._estimators._progress import steps_of
from sklearn_pate._votes._unit_updates import UnitUpdates, UpdateStep
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import PublicDataWarning, warn_user
from sklearn_pate.mechanisms._function_release import FunctionRelease
from sklearn_pate.mechanisms._mean_scores import MOST_VALUES, shrunk
from sklearn_pate.mechanisms._oracle import Oracle

__all__ = ["ScoreSteps", "StepsEstimate"]

# Share of the squared length of a unit's updates in each step: later ones matter more.
_SHARES = (0.15, 0.25, 0.6)
# Coordinates for each unit of mu and each of the units of privacy, more where the
# first ones matter most. Measured on tables, and on images.
_COORDINATES, _ORDERED, _FEWEST = 0.05, 0.25, 5
# Public rows for each coordinate, as their covariance stands for that of private rows.
_ROWS_PER_COORDINATE = 10
# Radius of the clipping, in root mean squares of an update under the model.
_RADIUS, _SMALLEST, _LARGEST = 0.9, 0.5, 2.5
# Curvature that is added, and below which none is counted, relative to its mean and to
# that of equal probabilities: public rows may vary less than private ones.
_RIDGE, _FLOOR = 0.1, 0.4
# Curvature of private rows, relative to that of public rows, that is worth a warning.
_UNLIKE = 2.0
# Probabilities differ from 0 and 1 by round-off below this.
_NEGLIGIBLE = 1e-9


class StepsEstimate(NamedTuple):
    """Released coefficients of a logistic regression. May be published."""

    #: Coefficients, shape (n_coordinates, n_classes - 1).
    coefficients: NDArray[np.float64]
    #: Update and noisy sum of each step.
    steps: list[tuple[UpdateStep, NDArray[np.int64]]]


class ScoreSteps(FunctionRelease):
    """Logistic regression in a public basis, by a few steps with noise.

    No teacher is trained. Each row, or group, is a shard of its own, and sends one
    vector of bounded length in each of three steps: its gradient of a logistic
    regression at the coefficients released so far. The vectors are added up, and
    released with noise. The basis has principal components of the represented rows and
    functions of their distances to public rows, so that the function is not linear in
    the columns. Public rows also determine the curvature, so that three steps suffice.
    For images, and with `representation` given, "auto" is a basis without distances,
    and has more functions: the first columns of the representation matter most.

    Parameters
    ----------
    basis : {"auto", "linear", "rbf"}, default="auto"
        As for :class:`~sklearn_pate.mechanisms.MeanScores`.

    max_coordinates : int, default=500
        Largest number of functions. Fewer are used with more noise, fewer private rows
        and fewer public rows.

    noise_scale : float, default=None
        As for :class:`~sklearn_pate.mechanisms.MeanScores`.

    noise_seed : int, default=None
        An integer makes the noise reproducible and **voids every guarantee**.

    Notes
    -----
    In step i = 1, 2, 3 a unit sends a vector of whole numbers of length at most
    sqrt(s_i) S, with s = (0.15, 0.25, 0.6) and S = 1024. The proof of the cost is that
    of :class:`~sklearn_pate.mechanisms.MeanScores` with three steps; see
    :doc:`/accounting`. Newton steps with noise are those of Ganesh, Haghifam, Steinke,
    Thakurta (2023), "Faster differentially private convex optimization via second-order
    methods", here with the Hessian of public rows, which has no privacy cost.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import ScoreSteps
    >>> mechanism = ScoreSteps(noise_scale=4)
    >>> round(mechanism.stated_epsilon(n_queries=3, n_classes=2, delta=1e-5), 2)
    1.99
    """

    released = "updates"

    n_steps: ClassVar[int] = len(_SHARES)

    def n_coordinates(
        self, n_units: int, n_public: int, n_classes: int, *, ordered: bool = False
    ) -> int:
        """Compute the number of functions that noise and public rows allow.

        Parameters
        ----------
        n_units : int
            Number of private rows or groups, public.

        n_public : int
            Number of public rows.

        n_classes : int
            Number of classes, at least 2.

        ordered : bool, default=False
            Whether the functions are in order of importance, as components of images
            are. Then more of them are used.

        Returns
        -------
        n_coordinates : int
            At most `max_coordinates`.
        """
        check_count("n_units", n_units)
        check_count("n_public", n_public, 0)
        check_count("n_classes", n_classes, 2)
        by_unit = _ORDERED if ordered else _COORDINATES
        n_values = min(by_unit * n_units * self._mu, MOST_VALUES)
        allowed = n_values / (n_classes - 1)
        return min(
            self.max_coordinates,
            max(_FEWEST, int(allowed)),
            max(_FEWEST, n_public // _ROWS_PER_COORDINATE),
        )

    def largest_n_coordinates(self, n_teachers: int, n_classes: int) -> int:
        many = self.max_coordinates * _ROWS_PER_COORDINATE
        return self.n_coordinates(n_teachers, many, n_classes)

    def estimate(
        self,
        updates: UnitUpdates,
        values: NDArray[np.float64],
        n_classes: int,
        entry: FitEntry | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> StepsEstimate:
        """Release the coefficients. Every call has a privacy cost.

        Parameters
        ----------
        updates : UnitUpdates
            Updates of rows or groups. Sensitive.

        values : ndarray of shape (n_public, n_coordinates)
            Values of the basis at public rows.

        n_classes : int
            Number of classes.

        entry : FitEntry, default=None
            Ledger entry, whose cost is recorded before the first noise is drawn, and
            which stores the result of each step before the next one is computed.

        start : ndarray of shape (n_coordinates, n_classes - 1), default=None
            Coefficients to start from, and to shrink towards. They must follow from
            public numbers, or from earlier releases. None means zeros.

        Returns
        -------
        estimate : StepsEstimate
            To be published at the cost of `stated_epsilon`.

        Raises
        ------
        LedgerError
            If the ledger cannot be written; then nothing is returned.
        """
        oracle = Oracle(updates, self, n_queries=self.n_steps, entry=entry)
        n_units = updates.shape[0]
        if start is None:
            start = np.zeros((values.shape[1], n_classes - 1))
        coef, steps = start, []
        radius = self._radius(coef.size, n_units) * np.sqrt(coef.size)
        scale, last = 1.0, None
        for share in steps_of("summing rows", _SHARES):
            curvature = _Curvature.at(values, coef, scale)
            step = UpdateStep(
                coef, curvature.left_root(-1), curvature.right_root(-1), radius, share
            )
            oracle.answer([updates.take(step)])
            released = cast(NDArray, oracle.transcript().histograms)[-1]
            released = released.reshape(coef.shape)
            steps.append((step, released))
            unit = step.unit / n_units
            variance = (self._sigma * unit) ** 2 + 1 / n_units  # of noise, of sampling
            gradient = curvature.applied(unit * released, 1)
            if last is not None:
                ratio = last.ratio(coef, gradient, variance)
                if ratio > 1:  # the last move was too far: go back to its best part
                    coef = last.coef + (coef - last.coef) / ratio
                    gradient = last.gradient + (gradient - last.gradient) / ratio
                    scale *= ratio
                    curvature = curvature.times(ratio)
            last = _Move(coef, gradient, curvature, variance)
            change = curvature.applied(coef - start, 1)
            change += curvature.applied(gradient, -1)
            change = shrunk(change, np.full(len(coef), variance), first=8)
            coef = start + curvature.applied(change, -1)
        if scale > _UNLIKE:
            warn_user(
                f"The private rows vary {scale:.1f} times as much as the public rows "
                "where it matters: the public rows are unlike them, and predictions "
                "are worse than need be. This follows from the release alone. Pass "
                "public rows of the same population, or n_teachers=250.",
                PublicDataWarning,
            )
        return StepsEstimate(coef, steps)

    @property
    def _mu(self) -> float:
        return np.sqrt(self._squared_distance(1)) / self.noise_scale

    def _radius(self, size: int, n_units: int) -> float:
        """Balance the noise, which grows with the radius, and the bias by clipping."""
        noise = 4 * size / (self._mu**2 * n_units)  # relative to that of sampling
        return float(np.clip(_RADIUS * noise ** (-1 / 3), _SMALLEST, _LARGEST))


@dataclass(frozen=True)
class _Curvature:
    """Mean Hessian of the log-loss, as a factor by coordinates and one by classes."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]

    @classmethod
    def at(
        cls, values: NDArray[np.float64], coef: NDArray[np.float64], scale: float
    ) -> Self:
        """Compute it at public rows, times a scale, with a ridge."""
        n_classes = coef.shape[1] + 1
        H = helmert(n_classes)
        probabilities = softmax(values @ coef @ H, axis=1)
        weights = (1 - np.sum(probabilities**2, axis=1)) / (n_classes - 1)
        weights = np.maximum(weights, _FLOOR / n_classes)
        by_coordinate = (values.T * weights) @ values / len(values)
        second = probabilities.T @ probabilities / len(values)
        by_class = H @ (np.diag(probabilities.mean(axis=0)) - second) @ H.T
        # The mean over classes is part of the first factor. Where the model is sure of
        # all public rows, nothing but round-off is left.
        mean = np.trace(by_class) / (n_classes - 1)
        by_class = by_class / mean if mean > _NEGLIGIBLE else np.eye(n_classes - 1)
        return cls(scale * _with_ridge(by_coordinate), _with_ridge(by_class))

    def times(self, scale: float) -> Self:
        """Multiply it by a number."""
        return replace(self, left=scale * self.left)

    def left_root(self, sign: int) -> NDArray[np.float64]:
        """Compute the root of the first factor, or of its inverse."""
        return _root(self.left, sign)

    def right_root(self, sign: int) -> NDArray[np.float64]:
        """Compute the root of the second factor, or of its inverse."""
        return _root(self.right, sign)

    def applied(self, coef: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
        """Multiply coefficients by the root, or by its inverse."""
        return self.left_root(sign) @ coef @ self.right_root(sign)


@dataclass(frozen=True)
class _Move:
    """Start of a move: coefficients, noisy gradient and its variance, curvature."""

    coef: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: _Curvature
    variance: float

    def ratio(
        self,
        coef: NDArray[np.float64],
        gradient: NDArray[np.float64],
        variance: float,
    ) -> float:
        """Compare the curvature along the move with the one that was assumed.

        The secant of the gradients, relative to the public curvature; 1 if it exceeds
        that by no more than two standard deviations of its noise.
        """
        move = coef - self.coef
        assumed = float(np.sum(self.curvature.applied(move, 1) ** 2))
        if assumed == 0:
            return 1.0
        ratio = float(np.vdot(move, self.gradient - gradient)) / assumed
        noise = np.sqrt((self.variance + variance) / assumed)
        return ratio if ratio > 1 + 2 * noise else 1.0


def _with_ridge(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    size = len(matrix)
    if size == 1:
        return matrix
    return matrix + _RIDGE * np.trace(matrix) / size * np.eye(size)


def _root(matrix: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
    """Compute the symmetric square root of a matrix, or of its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values ** (sign / 2)) @ vectors.T
