"""Where the coordinates' means lie, from noisy ones of them all: what they share is their prior.

In half widths of the box the means of the coordinates count as drawn from one law, which is
estimated from the noisy means themselves (empirical Bayes; docs/adaptive.md). Post-processing:
noisy means and public numbers go in, and nothing else.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .domain import Domain

__all__ = ["FEWEST", "located"]

Array = NDArray[np.float64]

# What halving or doubling a number costs below is in the root mean square error of `located`, over
# the means of bench/table_means.py's four tables and of four wide laws (200 to 1000 coordinates:
# uniform, normal, two clumps, few far from many), in half widths, with noise of 0.03 to 1.

#: Fewer coordinates count one by one, and of fewer than the second a law's mean and deviation are
#: all that is estimated: half -2.6 to 1.5 %, twice 8 % (digits, d = 61).
FEWEST, _MANY = 8, 48

#: Deviations of a normal law that are averaged over, in half widths, and the precision of its
#: mean: that of a uniform one in the box, whose variance is 1/3. Means in a box deviate by 1 at
#: most; half or twice of that, or of the precision, changes the mean error by 1 %, and by 13 % at
#: most where the noise is as wide as the box (the smaller deviations win there). Half or twice as
#: many steps, of 12 %: 1.4 %; half or twice the least deviation: 0.2 %.
_SCATTERS, _MEAN_PRECISION = np.geomspace(2.0**-10, 1.0, 61), 3.0

#: A law of many coordinates: normal parts half a noise deviation apart, at most so many, and as
#: wide as half their distance (half as many: whole releases of few far from many are 22 % worse at
#: epsilon = 1; twice as many: better by 4 % at most, for twice the time). The normal law that fits
#: best counts as so many coordinates: half as many gain up to 16 % where the law is clumps and lose
#: 0.9 % where it is smooth, twice as many lose up to 20 %. Few steps of the iteration, which would
#: otherwise go on to fit the noise: half 1.2 % worse (14 % at most), twice 0.6 % better.
_PARTS, _NORMAL_COUNTS, _STEPS = 200, 32.0, 20

#: No logarithm of a likelihood is smaller: numbers below the normal ones (e^-708) are slow, and
#: 200 parts of e^-100 are nothing beside a rounding. At -50 and -200 no error changes.
_IMPOSSIBLE = -100.0

#: A law is made of so many coordinates at most, evenly taken: 10 MB.
_OF_COORDINATES = 4096


def located(point: Array, sd: Array, domain: Domain) -> tuple[Array, Array]:
    """Where each coordinate's mean lies, given noisy means of them all. Post-processing.

    Parameters
    ----------
    point : array (d,), noisy offsets from the domain's centre along its axes, in ``domain.unit``
    sd : array (d,), standard deviations of their noise, in the same unit, above 0
    domain : Domain

    Returns
    -------
    (means, deviations) : arrays (d,), in the unit and along the axes of ``point``
        The posterior mean of each coordinate and its posterior standard deviation, the estimated
        law counting as known but for its own mean and deviation.
    """
    half, line = domain.half, domain.line
    x, noise = point / half, sd / half
    if x.size < FEWEST:  # the domain is an observation of its centre
        total = 1 + 1 / noise**2
        return half * (x / noise**2 / total), half / np.sqrt(total)
    mean, var, law = _normal(x, noise, line)
    if x.size >= _MANY and domain.basis is None and line is not None:
        mean, var = _mixed(x, noise, *law)
    return half * mean, half * np.sqrt(var)


def _normal(x: Array, noise: Array, line: Array | None) -> tuple[Array, Array, tuple[float, float]]:
    """(means, variances, (the law's mean, its deviation)): the law is normal about a common
    shift along ``line``.

    Averaged over the law's deviation, its root uniform on (0, 1], by its likelihood with the shift
    integrated out.
    """
    scatter = _SCATTERS[:, None]
    along = np.zeros(x.size) if line is None else line
    variance = noise**2 + scatter**2
    known = _MEAN_PRECISION + np.sum(along**2 / variance, axis=1)
    shift = np.sum(along * x / variance, axis=1) / known
    fit = np.sum(np.log(variance) + x**2 / variance, axis=1) - known * shift**2 + np.log(known)
    likely = np.sqrt(_SCATTERS) * np.exp((fit.min() - fit) / 2)
    likely /= np.sum(likely)
    kept = scatter**2 / variance
    each = kept * x + (1 - kept) * shift[:, None] * along
    own = kept * noise**2 + ((1 - kept) * along) ** 2 / known[:, None]
    mean = likely @ each
    law = float(likely @ shift), math.sqrt(float(likely @ _SCATTERS**2))
    return mean, likely @ (own + (each - mean) ** 2), law


def _mixed(x: Array, noise: Array, middle: float, scatter: float) -> tuple[Array, Array]:
    """(means, variances): the law is a mixture, the likeliest one (Kiefer & Wolfowitz 1956; Jiang &
    Zhang 2009) beside the normal one that is given."""
    low, high = max(float(x.min()), -1.0), min(float(x.max()), 1.0)
    if not low < high:
        low, high = -1.0, 1.0
    step = max((high - low) / _PARTS, 0.5 * float(np.median(noise)))
    at = np.linspace(low, high, max(math.ceil((high - low) / step), 2) + 1)
    width = 0.5 * float(at[1] - at[0])
    normal = np.exp(-0.5 * ((at - middle) / max(scatter, width)) ** 2) + 1e-3  # none is impossible
    normal *= _NORMAL_COUNTS / np.sum(normal)
    some = slice(None, None, -(-x.size // _OF_COORDINATES))
    likely = _likelihoods(x[some], noise[some], at, width)
    law = normal / np.sum(normal)
    for _ in range(_STEPS):
        law = normal + law * (likely.T @ (1 / (likely @ law)))
        law /= np.sum(law)
    mean, var = np.empty((2, x.size))
    for start in range(0, x.size, _OF_COORDINATES):
        part = slice(start, start + _OF_COORDINATES)
        weights = _likelihoods(x[part], noise[part], at, width) * law
        weights /= np.sum(weights, axis=1, keepdims=True)
        kept = (width**2 / (noise[part] ** 2 + width**2))[:, None]
        each = at + kept * (x[part, None] - at)
        mean[part] = np.sum(weights * each, axis=1)
        own = kept * noise[part, None] ** 2 + (each - mean[part, None]) ** 2
        var[part] = np.sum(weights * own, axis=1)
    return mean, var


def _likelihoods(x: Array, noise: Array, at: Array, width: float) -> Array:
    """Of each coordinate and part, over the largest of the coordinate."""
    log = -0.5 * (x[:, None] - at) ** 2 / (noise[:, None] ** 2 + width**2)
    return np.asarray(np.exp(np.maximum(log - log.max(axis=1, keepdims=True), _IMPOSSIBLE)))
