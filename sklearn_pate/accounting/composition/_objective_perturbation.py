"""Privacy cost of the minimiser of a convex objective with a random linear term."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve

__all__ = ["curvature_cost", "gaussian_objective_curve", "least_regularisation"]

# The exponential of half of epsilon is limited to that of this, against overflow.
_LARGEST_EXPONENT = 700.0


def curvature_cost(curvature: float, regularisation: float) -> float:
    """Compute the privacy cost of the curvature that one row adds to an objective.

    Parameters
    ----------
    curvature : float
        Largest second derivative c of a row's loss in its margin; rows have an L2 norm
        of at most 1.

    regularisation : float
        Coefficient lambda of lambda/2 |w|^2. Larger is more private.

    Returns
    -------
    cost : float
        Cost in nats, ln(1 + c / lambda).

    Notes
    -----
    Let F(w) = sum_i l(y_i w.x_i) + lambda/2 |w|^2 + b.w with a convex l whose slope is
    Lipschitz, and b with a density p. Exactly one b makes a given w the minimiser,
    b(w) = -sum_i l'(y_i w.x_i) y_i x_i - lambda w; both this map and its inverse are
    Lipschitz, so that the minimiser has the density p(b(w)) det H(w), where
    H = sum_i l'' x_i x_i^T + lambda I, almost everywhere: l'' may jump, as that of the
    Huber hinge does.

    Let A be the part of H that two neighbouring data sets share; A >= lambda I. If row
    x is replaced by z, the ratio of the two determinants is
    (1 + l''_x x.A^-1 x) / (1 + l''_z z.A^-1 z) <= 1 + c / lambda; the same bound holds
    if a row is removed, and 1 if one is added. No constant is better for all losses:
    the Huber hinge attains it. Chaudhuri, Monteleoni, Sarwate (2011, Theorem 9) have
    2 ln(1 + c / lambda), as they bound the eigenvalues of both rows together.
    """
    check_positive("curvature", curvature)
    check_positive("regularisation", regularisation)
    return math.log1p(curvature / regularisation)


def least_regularisation(epsilon: float, curvature: float) -> float:
    """Compute the regularisation that leaves half of epsilon to the noise.

    It is c / (e^{epsilon/2} - 1), for a `curvature_cost` of epsilon / 2. Chaudhuri,
    Monteleoni, Sarwate (2011, Algorithm 2) add the same amount where the curvature
    would take all of epsilon; where a little were left, the noise would be too large to
    be useful.
    """
    check_positive("epsilon", epsilon)
    check_positive("curvature", curvature)
    return curvature / math.expm1(min(epsilon / 2, _LARGEST_EXPONENT))


def gaussian_objective_curve(
    sigma: float,
    regularisation: float,
    curvature: float,
    gradient_bound: float = 1.0,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> RdpCurve:
    """Compute the privacy cost of an exact minimiser with a Gaussian linear term.

    Parameters
    ----------
    sigma : float
        Standard deviation of each coordinate of the linear term. Larger is more
        private.

    regularisation : float
        Coefficient lambda of lambda/2 |w|^2. Larger is more private.

    curvature : float
        Largest second derivative c of a row's loss in its margin.

    gradient_bound : float, default=1
        Largest slope G of a row's loss in its margin. The loss must not increase with
        the margin; rows have an L2 norm of at most 1.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent, for neighbours that add or remove one row.

    Notes
    -----
    With v = G^2 / sigma^2 and T of law N(v/2, v),
    (a-1) r(a) = ln E e^{(a-1) max(0, T)} + (a-1) ln(1 + c / lambda), where the
    expectation is Phi(-sqrt(v)/2) + e^{a(a-1)v/2} Phi((a - 1/2) sqrt(v)).

    Proof, with the density of :func:`curvature_cost`. The gradient of the row (x, y)
    at w is -g u with u = y x and g in [0, G], as the loss never increases. If the row
    is removed, b(w) changes by it: the log-ratio of Gaussian densities is
    (g^2 |u|^2 - 2 g b.u) / (2 sigma^2), and + 2 g b.u if it is added. That is convex in
    g, hence at most the larger of its values at 0 and G, max(0, T), where T is the
    privacy loss of Gaussian noise about a shift by G u: b, of the minimiser drawn from
    the first data set, has the law N(0, sigma^2 I), and u does not depend on it. A
    shorter u is a post-processing of a longer one, and E e^{(a-1) max(0, T)} is an
    f-divergence, of f(t) = max(t^a, t): |u| = 1 is the worst. The cost of the
    determinants is :func:`curvature_cost`.

    After Redberg, Koskela, Wang (2023, "Improving the privacy and practicality of
    objective perturbation for differentially private linear learners"). Their bound has
    v/2 + |X| with X of law N(0, v) in place of max(0, T), which is never more, as
    theirs allows increasing losses, and |ln(1 - c / lambda)| in place of
    ln(1 + c / lambda).

    Examples
    --------
    >>> from sklearn_pate.accounting.composition import gaussian_objective_curve
    >>> curve = gaussian_objective_curve(5.0, regularisation=2.0, curvature=0.25)
    >>> round(curve.to_epsilon(1e-5), 2)
    0.91
    """
    check_positive("sigma", sigma)
    check_positive("gradient_bound", gradient_bound)
    cost = curvature_cost(curvature, regularisation)
    orders = np.asarray(orders, dtype=np.float64)
    mu = float(gradient_bound) / float(sigma)
    with np.errstate(over="ignore"):  # an infinite cost of next to no noise
        tilt = orders * (orders - 1) * mu * mu / 2
    log_moment = np.logaddexp(log_ndtr(-mu / 2), tilt + log_ndtr((orders - 0.5) * mu))
    # The last term covers rounding.
    log_moment = np.maximum(log_moment, 0) + 8 * np.finfo(np.float64).eps
    return RdpCurve(orders, log_moment / (orders - 1) + cost)
