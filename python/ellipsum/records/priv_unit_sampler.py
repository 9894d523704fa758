"""The bits of PrivUnitG: integers by rejection from rounded Gaussian noise, pure epsilon.

Directions q are integer vectors of norm about L, Z integer vectors with the law P0 of
`rounded_gaussian` (standard deviation sigma), s = <Z, q> an exact integer. Wanted is the law
P0(Z) a(Z) / sum, with a = 1 on the side s >= theta_q and e^-eps0 elsewhere. Proposed is Z, or
Z + k q with probability w1 (k |q| about g sigma, so that v's side is met), of the density
P0 (w0 + w1 r), r = P0(Z - k q)/P0(Z) = exp((2 k s - k^2 |q|^2)/(2 sigma^2)) but for a factor that
is bounded; kept is a proposal with probability c a/(w0 + w1 r). Every error is relative, in a
density: it costs epsilon, and no delta. The proof: claim records-2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import noise
from ..noise_keys import JobKeys, Use

__all__ = ["NUMBERS_PER_BLOCK", "Sampler"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GRID_BITS = 28  # sigma = 2^28 and L = 2^22: |s| < 31.2 sqrt(d) 2^50 (1 + 2^-15) fits 63 bits
DIRECTION_BITS = 22  # of L, see above

#: |Z_i| <= 31.2 sigma: `kernels/exact_gaussian.py`.
_FARTHEST = 31.2
#: Relative error of a computed acceptance probability that is at least 2^-64: an exponent
#: within +-700 rounded twice, exp within 8 units of roundoff, five operations more.
_COIN_SLACK = 2.0**-40
NUMBERS_PER_BLOCK = 1 << 17  # of a round of trials: 1 MiB of integers stays in cache


class Sampler:
    """Draws for directions of dimension d; public parameters alone.

    Parameters
    ----------
    d, epsilon, threshold : of the real law; epsilon is what the bits satisfy
    grid_bits, direction_bits : int; smaller ones, for tests that count every outcome
    """

    def __init__(
        self,
        d: int,
        epsilon: float,
        threshold: float,
        *,
        grid_bits: int = GRID_BITS,
        direction_bits: int = DIRECTION_BITS,
    ) -> None:
        self.d, self.threshold = d, threshold
        self.sigma, self.length = 2.0**grid_bits, 2.0**direction_bits
        self.shift = round(threshold * self.sigma / self.length)  # k
        self.slack = self._slack(epsilon)
        self.epsilon0 = epsilon - self.slack
        if not self.epsilon0 > epsilon / 2:
            raise ValueError(f"epsilon {epsilon:g} is too small for a grid of this dimension")
        self._balance()

    # ---- parameters ----------------------------------------------------------------

    def _slack(self, epsilon: float) -> float:
        """What the bits cost: twice the error of a kept proposal's density, and how far the
        chance of being kept may differ between directions."""
        d, g = self.d, self.threshold
        # log of P0(z) is -z^2/2 sigma^2 + h, -1/8 sigma^2 <= h <= z^2/24 sigma^4, and z - kq too
        reach = _FARTHEST + (self.shift * (self.length + self.norm_slack) / self.sigma)
        shape = d * (1 / 8 + reach**2 / 24) / self.sigma**2 if self.shift else 0.0
        # side: P0(s >= theta) is Phi(-g) at g moved by tau
        shortest = self.length - self.norm_slack  # theta is rounded: half a unit of s, 4 ulp
        tau = (math.sqrt(d) / 2 + 0.5 / shortest) / self.sigma + g * 2.0**-49
        density = math.exp(-(max(g - tau, 0.0) ** 2) / 2) / math.sqrt(2 * math.pi)
        weight = math.expm1(epsilon)
        kept = weight * density * 2 * tau / (1 + weight * float(scipy.special.ndtr(-g - tau)))
        return (4 * (shape + _COIN_SLACK) + kept) * (1 + 2.0**-30)

    @property
    def norm_slack(self) -> float:
        """| |q| - L | is at most this: half a step in each coordinate, and one more."""
        return math.sqrt(self.d) / 2 + 1

    def _balance(self) -> None:
        """w1, w0 = 1 - w1 (exact), and the kept share c: c a <= w0 + w1 r on both sides."""
        k, s2 = self.shift, 2 * self.sigma**2
        norms = (self.length - self.norm_slack, self.length + self.norm_slack)
        theta = [self.threshold * self.sigma * norm * (1 - 2.0**-49) - 0.5 for norm in norms]
        least = min(
            (2 * k * side - k * k * norm**2) / s2 for side, norm in zip(theta, norms, strict=True)
        )
        ratio = math.exp(least) * (1 - 2.0**-20)  # r on the side, at least
        odds = math.expm1(self.epsilon0)
        w1 = odds / (odds + ratio) if k and ratio > 1 else 0.0
        self.w1 = math.ldexp(math.floor(math.ldexp(w1, 52)), -52)
        self.w0 = 1 - self.w1
        tightest = min(self.w0 * math.exp(self.epsilon0), self.w0 + self.w1 * ratio)
        self.inside = tightest * (1 - 2.0**-30)
        self.outside = self.inside * math.exp(-self.epsilon0)

    @property
    def trials(self) -> float:
        """Expected trials for one row: 1/(c Phi(-g) + c e^-eps0 Phi(g))."""
        side = math.exp(float(scipy.special.log_ndtr(-self.threshold)))
        return 1 / (self.outside + (self.inside - self.outside) * side)

    # ---- directions ----------------------------------------------------------------

    def quantise(self, n: int, rows: Callable[[slice], Array]) -> Integers:
        """Integer directions q of norm L +- norm_slack, *checked in integers*: whatever the
        floating-point steps did, a row that fails (not finite, 0) is the last axis.

        Of n rows, that are asked for by blocks.
        """
        out: Integers = np.empty((n, self.d), dtype=np.int64)
        step, start = max(2, NUMBERS_PER_BLOCK // self.d), 0
        while start < n:  # the last row is with others: einsum adds one alone otherwise
            part = slice(start, start + step if start + step < n - 1 else n)
            out[part] = self._quantised(rows(part))
            start = part.stop
        return out

    def _quantised(self, rows: Array) -> Integers:
        size = np.abs(rows).max(axis=1, keepdims=True)
        unit = rows / size
        unit = unit / np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
        finite = np.isfinite(unit).all(axis=1)
        unit[~finite] = 0.0
        q: Integers = np.rint(np.clip(unit, -1, 1) * self.length).astype(np.int64)
        norm2 = np.einsum("ij,ij->i", q, q)
        low, high = self.length - self.norm_slack, self.length + self.norm_slack
        good = (norm2 >= math.ceil(max(low, 0) ** 2)) & (norm2 <= math.floor(high**2))
        q[~good] = 0
        q[~good, -1] = int(self.length)
        return q

    # ---- draws ---------------------------------------------------------------------

    def draw(self, directions: Integers, keys: JobKeys, threads: int | None = None) -> Integers:
        """One released integer vector for each direction, in its place."""
        out = directions
        norm2 = np.einsum("ij,ij->i", directions, directions)
        theta = np.rint(self.threshold * self.sigma * np.sqrt(norm2)).astype(np.int64)
        pending = np.arange(len(directions))
        block, round_number = max(1, NUMBERS_PER_BLOCK // self.d), 0
        while pending.size:
            now, later = pending[:block], pending[block:]
            pair = (keys.of(Use.PROPOSAL, round_number), keys.of(Use.COIN, round_number))
            z, kept = self._trial(directions[now], norm2[now], theta[now], pair, threads)
            out[now[kept]] = z[kept]
            pending = np.concatenate([now[~kept], later])
            round_number += 1
        return out

    def _trial(
        self,
        q: Integers,
        norm2: Integers,
        theta: Integers,
        keys: tuple[bytes, bytes],
        threads: int | None,
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """A proposal for each direction, and whether it is kept."""
        noise_key, key = keys
        z = noise.rounded_gaussian(q.size, self.sigma, key=noise_key, threads=threads)
        z = z.reshape(q.shape)
        words = noise.keystream(2 * len(q), key=key)
        if self.w1:
            shifted = words[len(q) :] < np.uint64(math.ldexp(self.w1, 64))
            z += q * (self.shift * shifted)[:, None]
        s = np.einsum("ij,ij->i", z, q)
        chance = self._chance(s, norm2, s >= theta)
        whole = np.ldexp(chance, 64).astype(np.uint64)  # chance < 1
        coin = words[: len(q)]
        kept = coin < whole
        for i in np.flatnonzero(coin == whole).tolist():  # one in 2^64: more bits decide
            kept[i] = self._decide(int(s[i]), int(norm2[i]), bool(s[i] >= theta[i]), key, i)
        return z, kept

    def _chance(self, s: Integers, norm2: Integers, side: NDArray[np.bool_]) -> Array:
        """c a/(w0 + w1 r), within `_COIN_SLACK` of it where it is at least 2^-64."""
        top = np.where(side, self.inside, self.outside)
        if not self.w1:
            return top
        k, s2 = float(self.shift), 2 * self.sigma**2
        with np.errstate(over="ignore", under="ignore"):
            r = np.exp((2 * k * s.astype(np.float64) - k * k * norm2) / s2)
            return np.asarray(top / (self.w0 + self.w1 * r))

    def _decide(self, s: int, norm2: int, side: bool, key: bytes, index: int) -> bool:
        """The coin where its first 64 bits equal those of the chance: 40 digits, more words."""
        context = Context(prec=60)
        exponent = Fraction(2 * self.shift * s - self.shift**2 * norm2, int(2 * self.sigma**2))
        power = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        r = context.exp(power)
        bottom = context.add(Decimal(self.w0), context.multiply(Decimal(self.w1), r))
        chance = context.divide(Decimal(self.inside if side else self.outside), bottom)
        scaled = Fraction(chance) * 2**64
        first = math.ldexp(
            float(self._chance(np.array([s]), np.array([norm2]), np.array([side]))[0]), 64
        )
        rest = min(max(scaled - int(first), Fraction(0)), Fraction(1))
        more = b"".join(
            int(noise.keystream(index + 1, key=key, nonce=nonce)[index]).to_bytes(8, "big")
            for nonce in range(1, 33)
        )
        return Fraction(int.from_bytes(more, "big"), 2 ** (8 * len(more))) < rest
