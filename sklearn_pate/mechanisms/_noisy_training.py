"""Mechanisms of learners without teachers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import calibrate_noise
from sklearn_pate.accounting._cost import Cost, PureCost, curve_after
from sklearn_pate.accounting._profile import PrivacyProfile, curve_profile
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count, check_positive, counted
from sklearn_pate.accounting.composition import (
    OnDisjointRows,
    SelectionLaw,
    TruncatedNegativeBinomial,
    TruncatedPoisson,
    check_sampling_rate,
    curvature_cost,
    dpsgd_cost,
    dpsgd_profile,
    gaussian_objective_curve,
    sampled_gaussian_curve,
    upper_envelope,
)
from sklearn_pate.accounting.plurality._closed_form import (
    gumbel_worst_case,
    permute_and_flip_worst_case,
    pure_dp_curve,
    threshold_worst_case,
)
from sklearn_pate.mechanisms._noise import NoiseSource, gamma_vector, standard_normal
from sklearn_pate.mechanisms._noisy_max import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.mechanisms._noisy_sum import GaussianSum
from sklearn_pate.mechanisms._plurality import (
    Mechanism,
    PluralityMechanism,
    Response,
    spends_all,
)

Method = Literal["output", "objective", "gaussian"]
METHODS: dict[Method, str] = {
    "output": "output perturbation",
    "objective": "objective perturbation",
    "gaussian": "objective perturbation with Gaussian noise",
}
#: L2 norm of the gradient of the sum of losses at which a minimiser is found.
TOLERANCE = 1e-6
_N_WORDS = 2**64
#: Distributions of the number of fits, given its mean.
LAWS: dict[str, Callable[[float], SelectionLaw]] = {
    "logarithmic": lambda mean: TruncatedNegativeBinomial.of_mean(0, mean),
    "geometric": lambda mean: TruncatedNegativeBinomial.of_mean(1, mean),
    "poisson": TruncatedPoisson.of_mean,
    "disjoint": lambda mean: OnDisjointRows(),
}


class NewtonSteps(GaussianSum):
    """Newton steps along noisy sums of clipped gradients, between two other sums.

    In step i a row, or a group, contributes a vector v of whole numbers with
    v.v <= s_i S^2, where s are the `shares` and S = 1024. `noise_scale` is the standard
    deviation of the noise on each number of a sum, in units of S. As the shares sum to
    1, all steps together are one Gaussian test with mu = 2 / noise_scale, up to the
    rounding in ``gdp_mu``; proof: :doc:`/accounting`.
    """

    released = "newton"

    #: Share of the squared length of a unit's vectors in each step: of the sum of
    #: labels, of Newton steps, of which later ones matter more, and of the correction
    #: of the mean probabilities.
    shares: ClassVar[tuple[float, ...]] = (0.03, 0.14, 0.23, 0.55, 0.05)

    def __init__(self, noise_scale: float | None = None) -> None:
        self.noise_scale: Any = noise_scale

    def _squared_distance(self, n_queries: int) -> float:
        # Of a whole fit. Vectors v and v' are at most |v| + |v'| apart.
        return 4


class DPSGDSteps(Mechanism):
    """Steps along noisy sums of clipped gradients, each over a Poisson sample.

    `noise_multiplier` is the standard deviation of the noise on a sum of gradients in
    units of `max_grad_norm`, the bound on the L2 norm of a row's gradient. Noisy sums
    are divided by `expected_batch_size`. `accountant` composes the steps, see
    ``dpsgd_cost``.
    """

    released = "model"

    def __init__(
        self,
        noise_multiplier: float,
        sampling_rate: float,
        n_steps: int,
        max_grad_norm: float,
        expected_batch_size: float,
        accountant: Literal["pld", "rdp"] = "pld",
    ) -> None:
        self.noise_multiplier = noise_multiplier
        self.sampling_rate = sampling_rate
        self.n_steps = n_steps
        self.max_grad_norm = max_grad_norm
        self.expected_batch_size = expected_batch_size
        self.accountant = accountant

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        of_step = sampled_gaussian_curve(
            self.noise_multiplier, self.sampling_rate, orders
        )
        return of_step * self.n_steps

    def _exact(self, n_queries: int, n_classes: int) -> "_AccountedSteps":
        return _AccountedSteps(
            self.noise_multiplier, self.sampling_rate, self.n_steps, self.accountant
        )

    def _relation(self, unit: str) -> str:
        """Return the neighbour relation: a row is added or removed."""
        if unit != "row":
            raise ValueError(
                f"unit={unit!r}, but the cost of DP-SGD holds for rows only"
            )
        return "add-remove"

    def in_one_line(self) -> str:
        """Write the parameters that determine the cost."""
        return (
            f"DP-SGD(noise_multiplier={self.noise_multiplier!r}, "
            f"sampling_rate={self.sampling_rate!r}, n_steps={self.n_steps}, "
            f"max_grad_norm={self.max_grad_norm!r})"
        )

    def _check_ready(self) -> None:
        for name in (
            "noise_multiplier",
            "sampling_rate",
            "max_grad_norm",
            "expected_batch_size",
        ):
            check_positive(name, getattr(self, name))
        check_count("n_steps", self.n_steps)
        if self.sampling_rate > 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} must be a probability; pass 1 "
                "or less."
            )
        if self.accountant not in ("pld", "rdp"):
            raise ValueError(
                f"accountant={self.accountant!r} is unknown; use 'pld' or 'rdp'."
            )


@dataclass(frozen=True)
class _AccountedSteps:
    """Cost of steps over Poisson samples, by an accountant."""

    noise_multiplier: float
    sampling_rate: float
    n_steps: int
    accountant: Literal["pld", "rdp"]
    is_all: ClassVar[bool] = True

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        epsilon, _ = dpsgd_cost(
            self.noise_multiplier,
            self.sampling_rate,
            self.n_steps,
            delta=delta,
            accountant=self.accountant,
        )
        return epsilon

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        steps = self.noise_multiplier, self.sampling_rate, self.n_steps
        curve = sampled_gaussian_curve(*steps[:2]) * self.n_steps
        profile = curve_profile(curve)
        if self.accountant == "rdp":
            return profile
        return profile.intersect(dpsgd_profile(*steps))

    def after(self, mu: float) -> None:
        """Return None: with a Gaussian release, curves are added."""


def largest_shift(method: str, regularisation: float) -> float:
    """Bound the distance of the solutions found for neighbouring data sets.

    For "output" between minimisers, found up to the tolerance; for the other methods
    between two approximate minimisers of one objective, see ``plan_perturbation``.
    """
    return (2 * (method == "output") + 2 * TOLERANCE) / regularisation


class NoisyObjective(Mechanism):
    """Minimisers of strongly convex objectives, with noise.

    The objective has the regularisation term lambda/2 |w|^2, lambda = `regularisation`.
    `linear_scale` is the scale of the noise on its linear term (0 for none),
    `output_scale` that of the noise on the minimiser; `curvature` is the largest second
    derivative of a row's loss. Each of `n_problems` binary problems has independent
    noise. Sources and proof: ``plan_perturbation``.
    """

    released = "model"

    def __init__(
        self,
        learner: str,
        method: Method,
        regularisation: float,
        linear_scale: float,
        output_scale: float,
        curvature: float,
        n_problems: int,
    ) -> None:
        self.learner = learner
        self.method = method
        self.regularisation = regularisation
        self.linear_scale = linear_scale
        self.output_scale = output_scale
        self.curvature = curvature
        self.n_problems = n_problems

    def draw_linear_term(
        self, noise: NoiseSource, n_weights: int
    ) -> NDArray[np.float64]:
        """Draw the b of the linear term b.w of one problem's objective."""
        if self.linear_scale == 0:
            return np.zeros(n_weights)
        return self._draw(noise, n_weights, self.linear_scale)

    def draw_output_noise(
        self, noise: NoiseSource, n_weights: int
    ) -> NDArray[np.float64]:
        """Draw the noise that is added to one problem's weights."""
        return self._draw(noise, n_weights, self.output_scale)

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        if self.n_problems != (1 if n_classes == 2 else n_classes):
            raise ValueError(
                f"n_problems={self.n_problems!r} does not match {n_classes} classes"
            )
        if self.method != "gaussian":
            return pure_dp_curve(self._pure_epsilon())
        minimiser = gaussian_objective_curve(
            self.linear_scale, self.regularisation, self.curvature
        )
        shift = largest_shift(self.method, self.regularisation) / self.output_scale
        output = RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS * shift**2 / 2)
        return (minimiser + output) * self.n_problems

    def _exact(self, n_queries: int, n_classes: int) -> PureCost | None:
        if self.method == "gaussian":
            return None
        return PureCost(self._curve(n_queries, n_classes, DEFAULT_ORDERS))

    def _relation(self, unit: str) -> str:
        """Return the neighbour relation, which depends on the noise."""
        if unit != "row":
            raise ValueError(
                f"unit={unit!r}, but the cost of private training holds for rows only"
            )
        return "add-remove" if self.method == "gaussian" else "replace-one"

    def in_one_line(self) -> str:
        """Write the classifier, the method and the scales of the noise."""
        scales = f"C={1 / self.regularisation:.6g}"
        if self.linear_scale:
            scales += f", noise of scale {self.linear_scale:.6g} on the objective"
        text = (
            f"{self.learner} with {METHODS[self.method]} ({scales}, "
            f"{self.output_scale:.6g} on the weights)"
        )
        if self.n_problems > 1:
            text += f" for each of {self.n_problems} problems"
        return text

    def _pure_epsilon(self) -> float:
        """Add up the pure costs of both noises, over all problems."""
        shift = largest_shift(self.method, self.regularisation)
        epsilon = shift / self.output_scale
        if self.method == "objective":
            epsilon += 2 / self.linear_scale
            epsilon += curvature_cost(self.curvature, self.regularisation)
        return self.n_problems * epsilon

    def _draw(
        self, noise: NoiseSource, n_weights: int, scale: float
    ) -> NDArray[np.float64]:
        """Draw Gaussian noise, or noise whose density falls with its L2 norm."""
        if self.method == "gaussian":
            return scale * standard_normal(noise, n_weights)
        return gamma_vector(noise, n_weights, scale)

    def _check_ready(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"method={self.method!r} is unknown; use one of {[*METHODS]}."
            )
        for name in ("regularisation", "output_scale", "curvature"):
            check_positive(name, getattr(self, name))
        check_count("n_problems", self.n_problems)
        if self.method != "output":
            check_positive("linear_scale", self.linear_scale)
        elif self.linear_scale != 0:
            raise ValueError(
                f"linear_scale={self.linear_scale!r} must be 0 with method='output', "
                "which adds no noise to the objective."
            )


@dataclass(frozen=True)
class NoisyScores:
    """Scores with noise, from which the best is chosen.

    `scale` is in units of the sensitivity of a score: sigma of the discrete Gaussian,
    or 1 / epsilon of the discrete Laplace distribution if `pure`.
    """

    scale: float
    pure: bool = False

    @classmethod
    def at(cls, epsilon: float) -> Self:
        """Return discrete Laplace noise for a given pure cost of one score."""
        return cls(1 / epsilon, pure=True)

    def curve(self, orders: ArrayLike) -> RdpCurve:
        """Compute the cost of one score."""
        if self.pure:
            return pure_dp_curve(1 / self.scale, orders)
        return threshold_worst_case(self.scale, orders)

    def draw(self, sensitivity: int, noise: NoiseSource) -> int:
        """Draw the noise of one score."""
        scale = self.scale * sensitivity
        if self.pure:
            return int(noise.discrete_laplace(1 / scale, 1)[0])
        return int(noise.discrete_gaussian(scale, 1)[0])

    def __str__(self) -> str:
        law = "Laplace" if self.pure else "Gaussian"
        return f"scores with discrete {law} noise of scale {self.scale:.6g}"


@dataclass(frozen=True)
class DisjointChoice:
    """The exponential mechanism on the scores of all candidates.

    `scale` is 1 / c in units of the sensitivity of a score. If `pure`, the choice is by
    permute-and-flip, which is more often correct at the same pure cost; otherwise by
    the exponential mechanism itself, whose Renyi cost is lower.

    Unlike votes, the scores of all candidates may change at once, by 1 each and in
    either direction. exp(c n_j) then changes by a factor in [e^-c, e^c], and the
    normaliser by one that is the same for all j: the log-ratio of probabilities lies in
    an interval of length 2c, the only assumption of
    :func:`~sklearn_pate.accounting.bounds.gumbel_worst_case`. Permute-and-flip
    is 2c-DP for any such scores (McKenna and Sheldon 2020, "Permute-and-flip: a new
    mechanism for differentially private selection").
    """

    scale: float
    pure: bool = False

    @classmethod
    def at(cls, epsilon: float) -> Self:
        """Return permute-and-flip with a given pure cost."""
        return cls(2 / epsilon, pure=True)

    def curve(self, orders: ArrayLike) -> RdpCurve:
        """Compute the cost of the choice."""
        if self.pure:
            return permute_and_flip_worst_case(1 / self.scale, orders)
        return gumbel_worst_case(1 / self.scale, orders)

    def choose(
        self, scores: Sequence[int], sensitivity: int, noise: NoiseSource
    ) -> int:
        """Choose the index of a candidate from its non-negative scores."""
        if len(scores) == 1:
            return 0
        mechanism = PermuteAndFlip if self.pure else GumbelMax
        c = 1 / (self.scale * sensitivity)
        return int(mechanism(c).answer([scores], noise=noise)[0])

    def __str__(self) -> str:
        name = "PermuteAndFlip" if self.pure else "GumbelMax"
        return f"a choice by {name}(c={1 / self.scale:.6g})"


class PoissonSampler:
    """Secret Poisson samples, of rate `sampling_rate` in (0, 1].

    A uniform 64-bit word is compared with floor(2^64 q), in exact arithmetic: the
    probability is q, or less by 2^-64 at most. A smaller one only lowers the cost, as
    D_a(P || (1-q) P + q Q) and its reverse are convex in q, and zero at q = 0.
    """

    def __init__(self, sampling_rate: float, noise: NoiseSource) -> None:
        self._last_word = np.uint64(math.floor(Fraction(sampling_rate) * _N_WORDS) - 1)
        self._noise = noise

    def draw(self, n_units: int) -> NDArray[np.bool_]:
        """Draw membership in a sample, of shape (n_units,). Sensitive."""
        return self._noise.words(n_units) <= self._last_word


class SampledMechanism(Mechanism):
    """A Gaussian mechanism that answers each query on a fresh secret sample.

    Each row (or group) is in the sample of a query with probability `sampling_rate`, in
    (0, 1]. The votes passed to it must come from samples drawn by its `sampler`, which
    it cannot check. Only Gaussian noise without a cap has this cost; other mechanisms
    are refused.

    A query releases votes n + Z about a sample, or a function of them. With one row
    more in the sample, one vote is added, and another one perhaps withdrawn: n moves by
    sqrt 2 at most, by whole numbers. So the noise multiplier is z = sigma / sqrt 2, and
    the cost that of
    :func:`~sklearn_pate.accounting.composition.sampled_gaussian_curve`, for neighbours
    that add or remove one row.

    :class:`~sklearn_pate.mechanisms.ConfidentGNMax` uses the same sample twice: for
    max_j n_j + Z', where the largest count moves by 1 at most, and for n + Z. Together
    they are one Gaussian release: in units of each coordinate's noise, neighbours are
    mu apart, mu^2 = 1 / sigma_threshold^2 + 2 / sigma^2, and z = 1 / mu. It is charged
    for every query, answered or not. (To charge the check for all and the answer for
    some would need the sample of the check to be unknown when the answer is drawn.)

    Zhu, Yu, Chandraker, Wang (2020), "Private-kNN: practical differential privacy for
    computer vision", Section 4; Mironov, Talwar, Zhang (2019), "Renyi differential
    privacy of the sampled Gaussian mechanism".
    """

    def __init__(self, mechanism: PluralityMechanism, sampling_rate: float) -> None:
        self.mechanism = mechanism
        self.sampling_rate = sampling_rate

    #: Queries come without the student's class probabilities.
    needs_probabilities: ClassVar[bool] = False

    @property
    def releases_histograms(self) -> bool:
        """Whether `mechanism` releases noisy counts, and not their plurality alone."""
        return self.mechanism.releases_histograms

    def answer_cap(self, n_queries: int) -> int:
        """Return the number of queries, as all may be answered."""
        return n_queries

    @property
    def sigma(self) -> float:
        """Scale of the noise on every count of an answer, in votes."""
        return self.mechanism.sigma

    def sampler(self, noise: NoiseSource) -> PoissonSampler:
        """Return the source of samples."""
        return PoissonSampler(self.sampling_rate, noise)

    def _relation(self, unit: str) -> str:
        """Return the neighbour relation: a unit has one vote in each of its samples."""
        return "add-remove"

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource | None = None,
        max_answers: int | None = None,
    ) -> Response:
        self._check_ready()
        return self.mechanism.respond(counts, noise, max_answers)

    def prepared(
        self,
        *,
        n_queries: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
        before: Cost | None = None,
    ) -> Self:
        """Return a clone with its noise set for a whole fit, after another release.

        Epsilon covers what is released before, too.
        """
        self.check()
        self._check_before(before)
        ready = clone(self)
        if epsilon is None:
            ready._check_noise()
            return ready
        self.mechanism._check_noise_unset(epsilon)
        if before is not None and before.curve.quiet_epsilon(delta) >= epsilon:
            raise ValueError(spends_all(epsilon))

        def curve(scale: float, orders: ArrayLike) -> RdpCurve:
            return curve_after(
                before, ready._with_scale(scale)._curve(n_queries, 2, orders)
            )

        return ready._with_scale(calibrate_noise(curve, epsilon=epsilon, delta=delta))

    def for_neighbors(self, n_neighbors: int) -> Self:
        """Return a clone that can answer, for `n_neighbors` votes a query at most."""
        self.check()
        inner = self.mechanism._for_teachers(n_neighbors)
        ready = clone(self).set_params(mechanism=inner)
        ready._check_ready()
        return ready

    def _with_scale(self, scale: float) -> Self:
        return clone(self).set_params(mechanism=self.mechanism._with_scale(scale))

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        self._check_noise()
        # A query costs the same with or without an answer.
        one = sampled_gaussian_curve(1 / self._distance(), self.sampling_rate, orders)
        return one * n_queries

    def _distance(self) -> float:
        """Return the distance of neighbouring votes, in units of the noise."""
        of_answer = math.sqrt(2) / self.sigma
        if isinstance(self.mechanism, ConfidentGNMax):
            return math.hypot(of_answer, 1 / self.mechanism.sigma_threshold)
        return of_answer

    def check(self) -> None:
        """Raise ValueError unless the mechanism has a cost on a sample."""
        # Exactly these: a subclass may add noise of another kind.
        if type(self.mechanism) not in (GNMax, NoisyHistogram, ConfidentGNMax):
            raise ValueError(
                f"mechanism={self.mechanism!r} has no known cost on a secret sample; "
                "use 'gnmax' or 'confident', which have Gaussian noise."
            )
        if self.mechanism.max_answers is not None:
            raise ValueError(
                f"max_answers={self.mechanism.max_answers!r} does not lower the cost "
                "on a secret sample, where queries without an answer cost the same; "
                "set max_answers=None, and lower n_queries."
            )
        if Fraction(check_sampling_rate(self.sampling_rate)) * _N_WORDS < 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} is below 2^-64, so that all "
                "samples would be empty; raise it, for example to 0.01."
            )

    def _check_noise(self) -> None:
        self.check()
        self.mechanism._check_noise()

    def _check_ready(self) -> None:
        self.check()
        self.mechanism._check_ready()


def selection_law(n_trials_distribution: str, mean_n_trials: float) -> SelectionLaw:
    """Return the distribution of the number of fits, or raise ValueError."""
    if n_trials_distribution not in LAWS:
        raise ValueError(
            f"n_trials_distribution={n_trials_distribution!r} is unknown; use one of "
            f"{[*LAWS]}."
        )
    return LAWS[n_trials_distribution](mean_n_trials)


def curves_of_fits(
    n_trials_distribution: str, mean_n_trials: float, fits: Sequence[RdpCurve]
) -> list[RdpCurve]:
    """Compute the cost of a search for each part of the data that a fit may use."""
    law = selection_law(n_trials_distribution, mean_n_trials)
    if n_trials_distribution == "disjoint":  # a row is used by one candidate
        return [law.cost(curve) for curve in fits]
    return [law.cost(upper_envelope(fits))]


@dataclass(frozen=True)
class _LargestCase:
    """Cost of a search: the larger cost of each use of a changed row."""

    cases: list[RdpCurve]
    is_all: ClassVar[bool] = True

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        return max(case.to_epsilon(delta) for case in self.cases)

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        return PrivacyProfile.largest(curve_profile(case) for case in self.cases)

    def after(self, mu: float) -> None:
        """Return None: with a Gaussian release, curves are added."""


class SelectedFit(Mechanism):
    """Best of several private fits, chosen by noisy scores.

    `learner` is the classifier at the end of each candidate, `fits` has the cost of one
    fit of each. `score_scale` is the scale of the noise on scores, or on the choice
    between them, which has a pure cost if `pure_scores`. `pure_fits`: all fits have
    pure costs; `add_remove`: their neighbours add or remove a row or group. `fit` is
    the mechanism of the winner.

    Given which rows are for what, two neighbouring data sets differ in rows of one part
    alone. If these are fitted on, a trial's score is made of its fit and of equal rows,
    and costs what the fit costs. If these are for scores, the distribution of the fit
    is the same, and a trial costs what the score costs, given the fit. Epsilon is the
    larger of the two cases', and so is the curve at each order. If the parts are
    random, the search is a mixture, and neither cost of a mixture is more than its
    largest part's.
    """

    released = "search"

    def __init__(
        self,
        learner: str,
        n_trials_distribution: str,
        mean_n_trials: float,
        score_scale: float,
        pure_scores: bool,
        fits: Sequence[RdpCurve],
        pure_fits: bool,
        add_remove: bool,
        fit: Mechanism | None = None,
    ) -> None:
        self.learner = learner
        self.n_trials_distribution = n_trials_distribution
        self.mean_n_trials = mean_n_trials
        self.score_scale = score_scale
        self.pure_scores = pure_scores
        self.fits = fits
        self.pure_fits = pure_fits
        self.add_remove = add_remove
        self.fit = fit

    @property
    def choice(self) -> NoisyScores | DisjointChoice:
        """Noise between scores and the choice."""
        kind = (
            DisjointChoice if self.n_trials_distribution == "disjoint" else NoisyScores
        )
        return kind(self.score_scale, self.pure_scores)

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        curve, pure = upper_envelope(self._cases()), self.pure_epsilon()
        if pure is None:
            return curve
        ceiling = pure_dp_curve(pure, curve.orders)
        return RdpCurve(curve.orders, np.minimum(curve.values, ceiling.values), pure)

    def _exact(self, n_queries: int, n_classes: int) -> "PureCost | _LargestCase":
        if self.pure_epsilon() is not None:
            return PureCost(self._curve(n_queries, n_classes, DEFAULT_ORDERS))
        return _LargestCase(self._cases())

    def pure_epsilon(self) -> float | None:
        """Pure cost of the whole search, if it has one."""
        if not self.pure_fits:
            return None
        fit = upper_envelope(self.fits)
        trial = upper_envelope([fit, self._score()])
        return self._law().pure_cost(fit.pure_epsilon, trial)

    def _relation(self, unit: str) -> str:
        return "add-remove" if self.add_remove else super()._relation(unit)

    def in_one_line(self) -> str:
        """Write the winner's mechanism, the number of trials, candidates and noise."""
        expected = ""
        if self.n_trials_distribution != "disjoint":
            expected = f", mean_n_trials={self.mean_n_trials!r}"
        search = (
            f"PrivateSearchCV(n_trials_distribution={self.n_trials_distribution!r}"
            f"{expected}) over {counted(len(self.fits), 'candidate')} of "
            f"{self.learner}, with {self.choice}"
        )
        return search if self.fit is None else f"{self.fit.in_one_line()}, by {search}"

    def _law(self) -> SelectionLaw:
        return selection_law(self.n_trials_distribution, self.mean_n_trials)

    def _score(self) -> RdpCurve:
        """Compute the cost of one score."""
        return self.choice.curve(self.fits[0].orders)

    def _cases(self) -> list[RdpCurve]:
        """Compute the cost of the search for each use of a changed row."""
        fits = curves_of_fits(self.n_trials_distribution, self.mean_n_trials, self.fits)
        return [*fits, self._law().cost(self._score())]

    def _check_ready(self) -> None:
        self._law()
        check_positive("score_scale", self.score_scale)
        if not self.fits:
            raise ValueError("fits is empty; pass at least one candidate.")
        if self.fit is not None:
            self.fit._check_ready()
