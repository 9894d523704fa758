"""The privacy statements of Koehler 2018, chapter 5, as printed. **None of them is a guarantee.**

They are here to be compared with what is exact (:class:`RateDistortion`, :class:`Bottleneck`,
:class:`GaussianChannel`); no release of this package uses one. Each function names its
equation and says what is wrong; ``tests/test_koehler_errata.py`` has a case that refutes it.
Variances are written s (the thesis writes sigma for both s and its root).
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from .bottleneck import Bottleneck
from .gaussian_channel import GaussianChannel
from .rate_distortion import RateDistortion

__all__ = [
    "alpha_5_37",
    "corollary_1_epsilon",
    "corollary_2_epsilon",
    "eta_5_33",
    "eta_5_34",
    "eta_5_38",
    "hsu_norm",
    "norm_5_4",
    "norm_a_3",
    "q_5_9",
    "rate_5_31",
    "sensitivity_5_12",
    "snr_epsilon_5_15",
    "theorem_5_4_1_epsilon",
]

Array = NDArray[np.float64]


def hsu_norm(q: Array, delta: float) -> float:
    """What (5.4), (5.8) and (A.3) should say: the root of tr Q + 2 sqrt(tr(Q^2) t) + 2 |Q| t.

    t = log(1/delta). P(|x| > this) <= delta for x ~ N(0, Q): Hsu, Kakade & Zhang 2012, Prop. 1.
    The exact quantile is the root of ``QuadraticForm(eigenvalues).isf(delta)``.
    """
    t = math.log(1 / delta)
    trace, square, top = _norms(q)
    return math.sqrt(trace + 2 * math.sqrt(square * t) + 2 * top * t)


def norm_5_4(q: Array, delta: float) -> float:
    """H(Q, delta), (5.4) and (5.8), with the sign under its inner root mended (printed: negative).

    Both factors 2 are missing, so it is no tail bound.
    """
    t = math.log(1 / delta)
    trace, square, top = _norms(q)
    return math.sqrt(trace + math.sqrt(square * t) + top * t)


def norm_a_3(q: Array, delta: float) -> float:
    """(A.3): the last term lacks its t, so it is no tail bound."""
    t = math.log(1 / delta)
    trace, square, top = _norms(q)
    return math.sqrt(trace + 2 * math.sqrt(square * t) + 2 * top)


def corollary_1_epsilon(model: RateDistortion, beta: float, radius: float, delta: float) -> float:
    """(5.6): beta (R + H)^2. From Theorem 2.5.1, which is false (see :func:`corollary_2_epsilon`),
    with Q of (5.5), here for symmetric A; H is :func:`hsu_norm`, which favours it."""
    channel = model.channel(beta)
    q = channel.matrix @ _covariance(model) @ channel.matrix.T + channel.noise
    return beta * (radius + hsu_norm(q, delta)) ** 2


def corollary_2_epsilon(
    cov_x: Array, cov_xy: Array, cov_y: Array, beta: float, radius: float, delta: float
) -> float:
    """(5.11): beta (|P| R + H)^2 with P of (5.10), and Q of (5.9) made symmetric (as printed it
    is not, and then neither its norm nor tr Q^T Q is what the bound needs).

    Theorem 2.5.1, on which it rests, needs the tail for *every given* x, not for the marginal of
    t, and does not bound the ratio of the normalisers.
    """
    matrix = Bottleneck(cov_x, cov_xy, cov_y).channel(beta).matrix
    root, cross, cov_t = _conditional(matrix, cov_x, cov_xy, cov_y)
    p = root @ np.linalg.solve(cov_x, cov_xy).T
    q = root @ cross @ np.linalg.solve(cov_t, cross.T) @ root.T
    return float(beta * (np.linalg.norm(p, 2) * radius + hsu_norm(q, delta)) ** 2)


def q_5_9(matrix: Array, cov_x: Array, cov_xy: Array, cov_y: Array) -> Array:
    """Q = S_{y|t}^-1 S_yt S_t^-1 S_ty, (5.9), as printed: not symmetric."""
    root, cross, cov_t = _conditional(matrix, cov_x, cov_xy, cov_y)
    return np.asarray(root.T @ root @ cross @ np.linalg.solve(cov_t, cross.T))


def sensitivity_5_12(matrix: Array, radius: float) -> float:
    """(5.12): |A (x - x')| <= |A| R for |x|, |x'| <= R. It is 2 |A| R."""
    return float(np.linalg.norm(matrix, 2)) * radius


def theorem_5_4_1_epsilon(channel: GaussianChannel, radius: float, delta: float) -> float:
    """(5.13): Phi^-1(1 - delta) sqrt(2 eta) + eta with eta = |A|^2 R^2 / (2 lambda_min).

    The implication holds for mu = sqrt(2 eta); this eta lacks a factor 4, (5.12)'s. (lambda_min
    is taken over directions that the channel reaches; more noise than that is given away.)
    """
    return _theorem_5_4_1(_eta(channel, radius), delta)


def snr_epsilon_5_15(snr: float, delta: float) -> float:
    """(5.15): Phi^-1(1 - delta) sqrt(SNR) + SNR/2, "a lower bound". mu is 2 (R/sigma) sqrt(SNR)."""
    return _theorem_5_4_1(snr / 2, delta)


def rate_5_31(beta: float, critical: float) -> float:
    """(5.29)-(5.31): I(x; t) = log((beta - 1)/(beta_c - 1)). It is half of that."""
    return math.log((beta - 1) / (critical - 1))


def eta_5_33(beta: float, critical: float) -> float:
    """(5.32)-(5.33): eta >= (beta - 1)/(beta_c - 1).

    Its first line is (beta - beta_c)/(beta_c - 1), and a factor 2 R^2/s_x is lost before that.
    """
    return (beta - 1) / (critical - 1)


def eta_5_34(largest: float, smallest: float, beta: float, radius: float) -> float:
    """(5.34): |A|^2 R^2 / lambda_min, the noise taken as weak as its weakest direction.

    It explodes for small s_min/s_max; in the noise's own metric s_min does not occur: the right
    eta = mu^2/2 is 2 R^2 (beta - 1/s_max).
    """
    gain = 1 - 1 / (largest * beta)
    return gain**2 * radius**2 * smallest * beta**2 / (smallest * beta - 1)


def alpha_5_37(ratio: float, smallest_beta: float) -> float:
    """(5.37): alpha = (s_min beta - gamma)/(s_min beta - 1), gamma = s_min/s_max."""
    return (smallest_beta - ratio) / (smallest_beta - 1)


def eta_5_38(ratio: float, smallest_beta: float) -> float:
    """(5.38), figure 5.3: (s_min beta/gamma - 1) alpha, from (5.34) with R^2 = s_max."""
    return (smallest_beta / ratio - 1) * alpha_5_37(ratio, smallest_beta)


def _theorem_5_4_1(eta: float, delta: float) -> float:
    return -float(scipy.special.ndtri(delta)) * math.sqrt(2 * eta) + eta


def _eta(channel: GaussianChannel, radius: float) -> float:
    value = np.linalg.eigvalsh(channel.noise)
    reached = value[value > 1e-13 * value[-1]]
    return float(np.linalg.norm(channel.matrix, 2)) ** 2 * radius**2 / (2 * float(reached[0]))


def _norms(q: Array) -> tuple[float, float, float]:
    """tr Q, tr Q^2 and |Q| of a covariance."""
    value = np.linalg.eigvalsh(np.atleast_2d(q))
    return float(value.sum()), float((value**2).sum()), float(value[-1])


def _covariance(model: RateDistortion) -> Array:
    return np.asarray((model.axes * model.variances) @ model.axes.T)


def _conditional(
    matrix: Array, cov_x: Array, cov_xy: Array, cov_y: Array
) -> tuple[Array, Array, Array]:
    """S_{y|t}^(-1/2), S_yt and S_t of t = matrix x + N(0, I)."""
    cov_t = matrix @ cov_x @ matrix.T + np.eye(len(matrix))
    cross = (matrix @ cov_xy).T
    left = cov_y - cross @ np.linalg.solve(cov_t, cross.T)
    value, basis = np.linalg.eigh((left + left.T) / 2)
    return np.asarray((basis / np.sqrt(value)) @ basis.T), cross, cov_t
