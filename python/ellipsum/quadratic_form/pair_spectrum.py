"""The spectrum of one Gaussian against another, without the digits that kappa itself would lose.

A spectrum is what decides the privacy loss of P = N(m1, S1) against Q = N(m2, S2): the
eigenvalues kappa of S1 against S2 as e = kappa - 1 and log kappa, the squared mean difference
along each in the metric of Q, and their multiplicities. None stands for two Gaussians that live
on different affine spaces: an event of probability 1 under the one has probability 0 under the
other.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate

__all__ = [
    "EXTENDED_ROUNDOFF",
    "Spectrum",
    "empty",
    "of_covariances",
    "of_leverages",
    "of_terms",
]

_UNIT_ROUNDOFF = 2.0**-53  # of a double, to nearest
#: Of kappa, 1/kappa and c^2: beyond, two Gaussians count as different.
_LARGEST, _LOG_LARGEST = 2.0**500, 346.0
_LEAST = 2.0**-50  # kappa - 1 beside the largest other one, and c
_NEGLIGIBLE = 2.0**-120  # kappa - 1 beside c and 1/c: 54 bits more are nothing
Array = NDArray[np.float64]


class Spectrum(NamedTuple):
    """Terms, a column each. What is multiplied by large t is kept in extended precision."""

    excess: Array  #: e = kappa - 1 > -1
    log_kappa: NDArray[np.longdouble]
    shift: Array  #: kappa c^2, the squared mean difference in the metric of Q
    end: NDArray[np.longdouble]  #: kappa c^2 / (2e), 0 where e is
    dof: Array  #: how often the eigenvalue occurs

    def kappa(self) -> Array:
        """kappa, also where it is so near 0 that 1 + e has no digits."""
        small = np.exp(self.log_kappa.astype(np.float64))
        return np.where(self.excess > -0.5, 1 + self.excess, small)

    def reversed(self) -> Spectrum:
        """Of Q against P: 1/kappa, and the shift in the metric of P."""
        k = self.kappa()
        return Spectrum(-self.excess / k, -self.log_kappa, self.shift / k, -self.end, self.dof)

    def merged(self) -> Spectrum:
        """Equal eigenvalues as one, those of kappa = 1 without a shift left out."""
        e, log_kappa, shift, end, dof = (
            column[(self.excess != 0) | (self.shift != 0)] for column in self
        )
        keys = np.stack([e, log_kappa.astype(np.float64)], axis=1)
        _, first, where = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        if first.size == e.size:
            return Spectrum(e, log_kappa, shift, end, dof)
        sums = []
        for column in (shift, end, dof):
            total = np.zeros(first.size, dtype=column.dtype)
            np.add.at(total, where.ravel(), column)
            sums.append(total)
        return Spectrum(e[first], log_kappa[first], *sums)

    def covered(self) -> Spectrum | None:
        """What the kernels can hold of it: a pair of which this one is a post-processing. None: so
        far apart that delta is taken for 1.

        Adding the same noise to both Gaussians of a term without shift, and scaling, makes e
        smaller. And with b^2 = 2^-54, a^2 + b^2 = 1, a N(c', 1) + b N(0, 1 + e') against the same
        without c' and e' is a term of e = b^2 e' and c^2 = a^2 c'^2/(1 + e): one of tiny e is a
        post-processing of a normal one and one without shift, side by side.
        """
        size, root = np.abs(self.excess), np.sqrt(self.shift)
        far = (self.shift > _LARGEST) | (size > _LARGEST) | (np.abs(self.log_kappa) > _LOG_LARGEST)
        if far.any():
            return None
        split = (size > 0) & (size < _NEGLIGIBLE * np.minimum(root, 1 / np.maximum(root, 1e-300)))
        e = np.where(split, 2.0**54 * self.excess, self.excess)
        largest = max(float(np.max(np.abs(e), initial=0.0)), float(np.max(root, initial=0.0)))
        least = _LEAST * min(largest, 1.0)
        low = (np.abs(e) < least) & (e != 0) & (split | (self.shift == 0))
        e = np.where(low, np.copysign(least, e), e)
        if not (split | low).any():
            return self
        beside = np.nextafter(self.shift[split], np.inf)
        none = np.zeros(beside.size)
        normal = _spectrum(none, none, beside, self.dof[split])
        moved = split | low
        small = np.where(moved, e, 0).astype(np.longdouble)
        log_kappa = np.where(moved, np.log1p(small), self.log_kappa)
        shift, end = (np.where(split, 0, column) for column in (self.shift, self.end))
        kept: list[NDArray[Any]] = [e, log_kappa, shift, end, self.dof]
        return Spectrum(*(np.concatenate([a, b]) for a, b in zip(kept, normal, strict=True)))

    def scaled(self, power: int) -> Spectrum:
        """kappa - 1 and c 2^power times as large, all of it far below 1."""
        e = np.ldexp(self.excess.astype(np.longdouble), power)
        shift = np.ldexp(self.shift, 2 * power)
        return _spectrum(e, np.log1p(e), shift, self.dof)

    def rows(self) -> Array:
        """As the kernels take it: log kappa and end are two doubles each."""
        columns = [self.excess, *_halves(self.log_kappa), self.shift, *_halves(self.end), self.dof]
        return np.ascontiguousarray(np.stack(columns, axis=1))


#: Relative error of the two extended columns: four units of their roundoff, or what two doubles
#: lose of 113 bits (2^-106), which ARM's long double has on Linux.
EXTENDED_ROUNDOFF = max(2 * float(np.finfo(np.longdouble).eps), 2.0**-104)


def _halves(values: NDArray[np.longdouble]) -> tuple[Array, Array]:
    high = values.astype(np.float64)
    return high, (values - high).astype(np.float64)


def _spectrum(e: Any, log_kappa: Any, shift: Any, dof: Any) -> Spectrum:
    """Rounds what need not be extended."""
    bent = np.asarray(e, dtype=np.float64) != 0
    twice = 2 * np.where(bent, e, 1)
    return Spectrum(
        np.asarray(e, dtype=np.float64),
        np.asarray(log_kappa, dtype=np.longdouble),
        np.asarray(shift, dtype=np.float64),
        np.asarray(np.where(bent, shift / twice, 0), dtype=np.longdouble),
        np.asarray(dof, dtype=np.float64),
    )


def empty() -> Spectrum:
    """Of a Gaussian against itself."""
    return _spectrum(*np.zeros((4, 0)))


def of_terms(kappa_minus_one: ArrayLike, shift2: ArrayLike, dof: ArrayLike) -> Spectrum | None:
    """From kappa - 1, c^2 (in the metric of P) and multiplicities."""
    e, c2, m = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (kappa_minus_one, shift2, dof))
    )
    if e.ndim != 1:
        raise ValueError(f"kappa_minus_one must be one-dimensional, got shape {e.shape}")
    if np.isnan(e).any() or (e < -1).any():
        raise ValueError("kappa_minus_one must be -1 or above in every term")
    if not (c2 >= 0).all():
        raise ValueError("shift2 must be 0 or above in every term")
    if not (np.isfinite(m) & (m > 0)).all():
        raise ValueError("dof must be finite and above 0 in every term")
    if (e == -1).any() or (e > _LARGEST).any() or (c2 > _LARGEST).any():
        return None
    wide = e.astype(np.longdouble)
    return _spectrum(wide, np.log1p(wide), (1 + wide) * c2, m)


def of_leverages(out: float, into: float, cross: float, rows: float) -> Spectrum | None:
    """Of N(0, G) against N(0, G - xx' + yy'): ``out`` = x'G^-1 x, ``into`` = y'G^-1 y, ``cross``.

    rho = 1/kappa solves rho^2 - (2 - out + into) rho + (1 - out)(1 + into) + cross^2 = 0. With
    sigma = rho - 1 that is sigma^2 + (out - into) sigma - g = 0, g = out into - cross^2 >= 0: the
    larger root has no cancellation, the other is -g over it; g is computed exactly.
    """
    a, b = _validate.nonnegative("out", out), _validate.nonnegative("into", into)
    c, m = _validate.finite("cross", cross), _validate.positive("rows", rows)
    if a > 1:
        raise ValueError(f"out must be at most 1, the leverage of a row that is there, got {a}")
    exact = Fraction(a) * Fraction(b) - Fraction(c) ** 2
    if exact < -Fraction(a) * Fraction(b) / 2**48:  # a rounded cross may pass Cauchy's bound
        raise ValueError(f"cross must be at most sqrt(out * into) in size, got {c}")
    wide = np.longdouble
    g, cross2 = _extended(max(exact, Fraction(0))), _extended(Fraction(c) ** 2)
    gap = wide(b) - wide(a)
    large = (abs(gap) + np.sqrt(gap * gap + 4 * g)) / 2
    if large == 0:
        return empty()
    up, down = (large, g / large) if b >= a else (g / large, large)
    product = (1 - wide(a)) * (1 + wide(b)) + cross2  # of both rho
    low = product / (1 + up) if down > 0.5 else 1 - down
    if low <= 0:
        return None
    log_low = np.log(low) if down > 0.5 else np.log1p(-down)
    e = np.array([-up / (1 + up), down / low])
    return _spectrum(e, np.array([-np.log1p(up), -log_low]), np.zeros(2), np.full(2, m))


def _extended(value: Fraction) -> np.longdouble:
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - Fraction(high)))


def of_covariances(
    mean1: ArrayLike, cov1: ArrayLike, mean2: ArrayLike, cov2: ArrayLike, rows: float
) -> Spectrum | None:
    """Of ``rows`` independent draws; a covariance of shape (d,) is a vector of variances."""
    m = _validate.positive("rows", rows)
    first = _validate.vector("mean1", np.atleast_1d(np.asarray(mean1)))
    second = _validate.vector("mean2", np.atleast_1d(np.asarray(mean2)), d=first.size)
    one, two = _covariance("cov1", cov1, first.size), _covariance("cov2", cov2, first.size)
    with np.errstate(over="ignore"):
        difference = first - second
    if not np.isfinite(difference).all():  # so far apart that doubles do not hold it
        return None
    if one.ndim == 1 and two.ndim == 1:
        spectrum = _of_variances(difference, one, two)
    else:
        spectrum = _of_matrices(difference, _full(one), _full(two), (first, second))
    if spectrum is None:
        return None
    e, log_kappa, shift, end, dof = spectrum
    return Spectrum(e, log_kappa, m * shift, m * end, m * dof)


def _covariance(name: str, value: Any, d: int) -> Array:
    if np.ndim(value) <= 1:
        variances = _validate.vector(name, np.atleast_1d(np.asarray(value)), d=d)
        if (variances < 0).any():
            raise ValueError(f"{name} must not be negative in any coordinate")
        return variances
    matrix = _validate.square(name, value, d=d)
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * float(np.max(np.abs(matrix)))):
        raise ValueError(f"{name} must be symmetric: use (S + S.T) / 2")
    if (matrix != matrix.T).any():
        matrix = 0.5 * matrix + 0.5 * matrix.T
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -1e-10 * abs(values[-1]):
        raise ValueError(f"{name} must be positive semidefinite")
    return matrix


def _full(covariance: Array) -> Array:
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def _of_variances(difference: Array, one: Array, two: Array) -> Spectrum | None:
    fixed = (one == 0) & (two == 0)  # there, both are the constant mean
    if ((one == 0) != (two == 0)).any() or difference[fixed].any():
        return None
    v1, v2, gap = (v[~fixed].astype(np.longdouble) for v in (one, two, difference))
    e = (v1 - v2) / v2
    if (e > np.finfo(np.float64).max).any():
        return None
    log_kappa = np.where(np.abs(e) < 0.5, np.log1p(e), np.log(v1) - np.log(v2))
    return _spectrum(e, log_kappa, (gap / v2) * gap, np.ones(e.size))


def _of_matrices(
    difference: Array, one: Array, two: Array, means: tuple[Array, Array]
) -> Spectrum | None:
    """Both at once: in the metric of S1 + S2 they are (1 + D)/2 and (1 - D)/2, and the
    eigenvalues of D, from S1 - S2, keep their digits where the two are nearly the same.

    A direction is left out where S1 + S2 is 0 in it and the means agree: exactly, not as far as
    the eigenvalues can tell (claim gaussian_pair-3).
    """
    d = difference.size
    given = one, two, *means
    power = math.frexp(float(max(np.abs(one).max(), np.abs(two).max())))[1] // 2
    one, two = np.ldexp(one, -2 * power), np.ldexp(two, -2 * power)  # no overflow of a sum
    with np.errstate(over="ignore"):
        difference = np.ldexp(difference, -power)
    if not np.isfinite(difference).all():
        return None
    spread = np.diag(one) + np.diag(two)
    scale = np.where(spread > 0, 1 / np.sqrt(np.where(spread > 0, spread, 1)), 1.0)
    gap = difference * scale
    values, axes = np.linalg.eigh((one + two) * np.outer(scale, scale))
    tolerance = 16 * d * _UNIT_ROUNDOFF
    real = values > tolerance * max(values[-1], 0)
    along = axes.T @ gap
    if not real.all() and not _share_range(*given, dimension=int(real.sum())):
        return None
    root = scale[:, None] * axes[:, real] / np.sqrt(values[real])
    tilt, vectors = np.linalg.eigh(root.T @ (one - two) @ root)
    if (1 - np.abs(tilt) <= tolerance).any():  # of different ranges, as far as doubles can tell
        return None
    shift = (vectors.T @ (along[real] / np.sqrt(values[real]))) ** 2 * 2 / (1 - tilt)
    log_kappa = np.log1p(tilt) - np.log1p(-tilt)
    return _spectrum(2 * tilt / (1 - tilt), log_kappa, shift, np.ones(tilt.size))


#: Primes below 2^31: products of two residues are 64-bit integers.
_PRIMES = (2**31 - 1, 2**31 - 19)


def _share_range(one: Array, two: Array, mean1: Array, mean2: Array, *, dimension: int) -> bool:
    """Whether S1 + S2 has that rank, and the means' difference lies in its range.

    Of the doubles as they are, modulo primes: a rank modulo a prime is never above the true one,
    and below it only where the prime divides every minor of that size.
    """
    ranks, wide = [], []
    for p in _PRIMES:
        total = (_residues(one, p) + _residues(two, p)) % p
        gap = (_residues(mean1, p) - _residues(mean2, p)) % p
        ranks.append(_rank(total, p))
        wide.append(_rank(np.column_stack([total, gap]), p))
    return max(ranks) == max(wide) == dimension


def _residues(values: Array, p: int) -> NDArray[np.int64]:
    parts, powers = np.frexp(values)
    whole = np.ldexp(parts, 53).astype(np.int64) % p
    two = {int(k): pow(2, int(k) - 53, p) for k in np.unique(powers)}
    scales = np.array([two[int(k)] for k in powers.ravel()], np.int64).reshape(powers.shape)
    return whole * scales % p


def _rank(matrix: NDArray[np.int64], p: int) -> int:
    left, rank = matrix.copy(), 0
    for column in range(left.shape[1]):
        rows = np.flatnonzero(left[rank:, column])
        if not rows.size:
            continue
        left[[rank, rank + rows[0]]] = left[[rank + rows[0], rank]]
        left[rank] = left[rank] * pow(int(left[rank, column]), -1, p) % p
        below = left[rank + 1 :, column].copy()
        left[rank + 1 :] = (left[rank + 1 :] - below[:, None] * left[rank] % p) % p
        rank += 1
        if rank == left.shape[0]:
            break
    return rank
