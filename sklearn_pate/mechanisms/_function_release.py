"""Base class of releases of a function of a row, in steps with Gaussian noise."""

from abc import abstractmethod
from typing import ClassVar, Self

from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._noisy_sum import GaussianSum

__all__ = ["FunctionRelease"]

BASES = ("auto", "linear", "rbf")


class FunctionRelease(GaussianSum):
    """Base class of releases of a function of a row in a public basis.

    The function is released in `n_steps` steps, each of which may depend on those
    before it. The noise is in units of the length that bounds all vectors of a teacher,
    or of a row or group, together.
    """

    #: Number of steps, which are queries as the oracle counts them.
    n_steps: ClassVar[int]

    def __init__(
        self,
        basis: str = "auto",
        max_coordinates: int = 500,
        *,
        noise_scale: float | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.basis = basis
        self.max_coordinates = max_coordinates
        self.noise_scale = noise_scale
        self.noise_seed = noise_seed

    def prepared(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        counts: MarginalCounts | None = None,
    ) -> Self:
        """Return a clone with its noise set, for one fit.

        Parameters
        ----------
        epsilon : float, default=None
            Target for the cost of a fit. None keeps `noise_scale`.

        delta : float, default=1e-5
            The probability mass that epsilon does not cover, in (0, 1).

        counts : MarginalCounts, default=None
            Noisy counts that are released before the function, and that `epsilon`
            covers, too.

        Returns
        -------
        mechanism : FunctionRelease
            All its parameters may be published.

        Raises
        ------
        ValueError
            If `epsilon` and `noise_scale` are both given, or neither, or the noise that
            epsilon needs cannot be drawn.
        """
        return self._calibrated(epsilon, delta, counts)

    @abstractmethod
    def largest_n_coordinates(self, n_teachers: int, n_classes: int) -> int:
        """Compute the number of coefficients a class, if there are many public rows.

        Parameters
        ----------
        n_teachers : int
            Number of teachers, or of rows or groups without teachers.

        n_classes : int
            Number of classes, at least 2.

        Returns
        -------
        n_coordinates : int
            At most `max_coordinates`.
        """

    def check(self) -> None:
        """Raise ValueError if a parameter beside the noise is out of range."""
        if self.basis not in BASES:
            raise ValueError(
                f"basis={self.basis!r} of {type(self).__name__} is unknown; use one of "
                f"{[*BASES]}."
            )
        check_count("max_coordinates", self.max_coordinates)

    def _squared_distance(self, n_queries: int) -> float:
        # Vectors v and v' are at most |v| + |v'| apart. A part costs as much as a fit.
        n_fits = max(1, -(-n_queries // self.n_steps))
        return 4 * n_fits

    def _check_noise(self) -> None:
        self.check()
        super()._check_noise()
