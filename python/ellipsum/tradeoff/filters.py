"""The linear filter z + A w + v_y: what it proves on clipped latents, and its distortion budget.

The filter is Chen, Navidi & Rajagopal's; its privacy is not theirs: an expected divergence
bounds no worst case. On latents clipped to a ball it is a Gaussian mechanism, whose mu is the
largest distance of two records in the noise's own metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from . import divergences

__all__ = ["filter_mu", "scale_to_budget"]

Array = NDArray[np.float64]

#: Bits between the reach of clipped latents and of the shift: beyond, the smaller is rounding.
_ALONE = 60

_DIVERGENCES = ("realised", "kl", "reverse-kl", "chi2", "renyi")


def filter_mu(A: ArrayLike, V: ArrayLike | None, radius: float) -> float:
    """The mu of z -> z + A w + v_y for any two records with ||z|| <= radius, labels included.

    **Guarantees.** sup ||A^+ (z - z' + v_y - v_y')|| never exceeds the value returned (an upper
    bound by duality, moved outward by the rounding of A's singular values), and comes within a
    relative 1e-9 of it where A's condition number is below 1e6, whatever the sizes of A, V and
    radius (powers of two in them go to mu to the bit). So the release of one record is mu-GDP
    between any two records: epsilon(delta) by :mod:`ellipsum.calibrate`, the Renyi divergence of
    order a at most a mu^2 / 2. The noise is taken as real numbers. It holds given A and V: if they
    were trained on the same people, they are a release of their own (claim tradeoff-5).

    Parameters
    ----------
    A : array (d, k)
        Of the noise A w, w standard normal.
    V : array (d, labels) or None
        One column for each label; None for a filter that uses no label.
    radius : float, above 0
        Every latent lies within it of the origin (it must be enforced by clipping).

    Returns
    -------
    float, infinite where the noise leaves a direction out
    """
    noise = np.atleast_2d(np.asarray(A, dtype=np.float64))
    if noise.ndim != 2 or not np.isfinite(noise).all():
        raise ValueError("A must be a finite matrix (d, k)")
    radius = _validate.positive("radius", radius)
    noise, unit = _near_one(noise)
    basis, size, _ = np.linalg.svd(noise)
    d, (shifts, shift_unit) = len(noise), _differences(V, len(noise))
    if len(size) < d or size[-1] <= size[0] * d * 2.0**-52:
        return math.inf
    rounding = 2.0**-50 * d * size[0] / size[-1]
    smallest = math.frexp(size[-1])[1]
    size, unit = np.ldexp(size, -smallest), unit + smallest
    found = [_furthest(size, basis.T @ shift, shift_unit, radius) for shift in shifts]
    top = max(part[1] for part in found)
    furthest = max(math.ldexp(value, max(part - top, -2000)) for value, part in found)
    return _times_power(furthest * (1 + rounding), top - unit)


def _near_one(matrix: Array) -> tuple[Array, int]:
    """The matrix over a power of two, its largest entry in [0.5, 1), and the power: exact."""
    power = math.frexp(float(np.abs(matrix).max(initial=0.0)))[1]
    return np.ldexp(matrix, -power), power


def _times_power(value: float, power: int) -> float:
    """value 2^power, rounded up where doubles end."""
    try:
        product = math.ldexp(value, power)
    except OverflowError:
        return math.inf
    return product if product >= 2.0**-1022 else math.nextafter(product, math.inf)


def _differences(V: ArrayLike | None, d: int) -> tuple[list[Array], int]:
    """0 and v_i - v_j for i < j, over a power of two; the ball is symmetric, so that the sign does
    not matter."""
    if V is None:
        return [np.zeros(d)], 0
    columns = np.atleast_2d(np.asarray(V, dtype=np.float64))
    if columns.ndim != 2 or len(columns) != d or not np.isfinite(columns).all():
        raise ValueError(f"V must be a finite matrix of {d} rows, a column for each label")
    columns, unit = _near_one(columns)
    labels = columns.shape[1]
    pairs = [(i, j) for i in range(labels) for j in range(i)]
    return [np.zeros(d)] + [columns[:, i] - columns[:, j] for i, j in pairs], unit


def _furthest(size: Array, shift: Array, shift_unit: int, radius: float) -> tuple[float, int]:
    """max of ||(u + shift 2^shift_unit) / size|| over ||u|| <= 2 radius, and the power of two that
    it is to be multiplied by; the smallest size in [0.5, 1)."""
    reach, unit = math.frexp(radius)
    unit += 1
    power = size**-2.0
    if not shift.any():
        return math.sqrt(_worst_distance2(power, shift, reach)), unit
    shift, shift_power = _near_one(shift)
    apart = shift_unit + shift_power - unit
    alone, around = float(np.linalg.norm(shift / size)), reach / float(size[-1])
    ratio = math.log2(alone / around) + apart
    if ratio > _ALONE:  # one of the two does not matter: their sum is above
        return alone + math.ldexp(around, max(-apart, -2000)), unit + apart
    if ratio < -_ALONE:
        return around + math.ldexp(alone, max(apart, -2000)), unit
    return math.sqrt(_worst_distance2(power, np.ldexp(shift, apart), reach)), unit


def _worst_distance2(power: Array, shift: Array, reach: float) -> float:
    """max of sum power_i (u_i + shift_i)^2 over ||u|| <= reach, by its dual.

    h(l) = l reach^2 + sum l power_i shift_i^2 / (l - power_i) is an upper bound for every
    l > max power, and its least value is attained (strong duality of the trust region). At the
    root of h' the error of the root counts twice squared only.
    """
    top = float(power.max())
    weight = (power * shift) ** 2
    at_top = power >= top * (1 - 1e-15)

    def slope(excess: float) -> float:
        return reach**2 - float((weight / (excess + (top - power)) ** 2).sum())

    high = math.sqrt(float(weight.sum())) / reach
    low = math.sqrt(float(weight[at_top].sum())) / reach
    tiny = top * 1e-30
    if high <= tiny or slope(max(low, tiny)) >= 0:
        excess = max(low, tiny)  # the hard case: the top direction alone takes up the slack
    else:
        excess = scipy.optimize.brentq(
            slope, max(low, tiny), 2 * high, xtol=1e-300, rtol=1e-14, maxiter=500
        )
    level = top + excess
    spread = np.where(shift == 0, 0.0, level * power * shift**2 / (excess + (top - power)))
    return float(level * reach**2 + spread.sum())


def scale_to_budget(
    A: ArrayLike,
    V: ArrayLike | None,
    cov: ArrayLike,
    budget: float,
    *,
    divergence: str = "realised",
    order: float = 2.0,
    priors: ArrayLike | None = None,
) -> tuple[Array, Array, float]:
    """Scale a filter so that its distortion is exactly the budget.

    Every divergence grows with the scale, so that one root (for ``"realised"`` a square root)
    replaces penalties. With labels, it is that of the pair (release, label) from (raw, label).
    The budget is a distortion, not privacy.

    Parameters
    ----------
    A : array (d, k); V : array (d, labels) or None
    cov : array (d, d)
        Covariance of the raw latents: the metric.
    budget : float, above 0
    divergence : {"realised", "kl", "reverse-kl", "chi2", "renyi"}
        ``"realised"``: E of half the squared distance moved.
    order : float
        Of ``"renyi"``.
    priors : array (labels,), optional
        Of the labels; equal if left out.

    Returns
    -------
    A, V : arrays, scaled
    scale : float

    Raises
    ------
    ValueError
        If the filter moves no label that occurs.
    """
    _validate.one_of("divergence", divergence, _DIVERGENCES)
    wanted, metric = _validate.positive("budget", budget), _validate.square("cov", cov)
    d = len(metric)
    noise = np.asarray(A, dtype=np.float64).reshape(d, -1)
    shifts = np.zeros((d, 1)) if V is None else np.asarray(V, dtype=np.float64).reshape(d, -1)
    share = np.full(shifts.shape[1], 1 / shifts.shape[1])
    if priors is not None:
        share = _validate.vector("priors", priors, d=shifts.shape[1])
        if (share < 0).any() or not share.sum() > 0:
            raise ValueError("priors must not be below 0, nor all be 0")
        share = share / share.sum()

    def cost(scale: float) -> float:
        return _cost(scale * noise, scale * shifts, metric, share, divergence, order)

    if not (noise.any() or shifts[:, share > 0].any()):
        raise ValueError(
            "A and V must not both be zero, for some label of priors above 0: no scale of what "
            "moves nothing reaches the budget"
        )
    if divergence == "realised":
        scale = math.sqrt(wanted / cost(1.0))
    else:
        scale = _increasing_root(cost, wanted)
    return scale * noise, scale * shifts, scale


def _cost(
    noise: Array, shifts: Array, metric: Array, share: Array, divergence: str, order: float
) -> float:
    added, zero = noise @ noise.T, np.zeros(len(metric))
    if divergence == "realised":
        inverse = np.linalg.inv(metric)
        moved = np.einsum("ij,ik,kj->j", shifts, inverse, shifts)
        return float(0.5 * (np.vdot(inverse, added) + share @ moved))
    if divergence == "kl":
        each = [divergences.kl(zero, metric, v, metric + added) for v in shifts.T]
        return float(share @ each)
    if divergence == "reverse-kl":
        each = [divergences.reverse_kl(zero, metric, v, metric + added) for v in shifts.T]
        return float(share @ each)
    a = 2.0 if divergence == "chi2" else order
    each = [divergences.renyi(zero, metric, v, metric + added, a) for v in shifts.T]
    if a == 1 or not np.isfinite(each).all():
        return float(share @ each)
    top = max(each)
    joint = top + math.log(float(share @ np.exp((a - 1) * (np.array(each) - top)))) / (a - 1)
    if divergence == "chi2":
        return 0.5 * math.expm1(joint) if joint < 709 else math.inf
    return joint


def _increasing_root(cost: Callable[[float], float], wanted: float) -> float:
    """Where an increasing function that may become infinite reaches a value."""
    low, high = 1.0, 1.0
    while cost(low) > wanted:
        low /= 2
    while cost(high) < wanted:
        high *= 2
    while not math.isfinite(cost(high)):
        middle = 0.5 * (low + high)
        if not math.isfinite(cost(middle)) or cost(middle) > wanted:
            high = middle
        else:
            low = middle
        if high - low <= 1e-15 * high:
            return low  # the budget is above all finite values
    if high <= low:
        return low
    return float(
        scipy.optimize.brentq(
            lambda scale: cost(scale) - wanted, low, high, xtol=1e-300, rtol=1e-14
        )
    )
