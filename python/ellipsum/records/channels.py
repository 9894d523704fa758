"""Channels between finite alphabets, with the exact epsilon and delta of the bits drawn.

A `Channel` holds integers: P(z | x) = weight / 2^62, each row summing to 2^62 exactly, and a draw
compares 62 random bits with their running sums. So the law of what leaves is the table
itself, and max log-ratios over it are the local guarantee: epsilon with delta = 0 between any two
inputs. `blahut_arimoto`, `information_bottleneck` and `exponential_mechanism` make channels.
"""

from __future__ import annotations

import decimal
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..tradeoff.alternating import Law, normalised
from ..tradeoff.bottleneck import best_of, proved_gap
from ..tradeoff.least_leakage import least_leakage

__all__ = [
    "BlahutArimoto",
    "BottleneckChannel",
    "Channel",
    "blahut_arimoto",
    "exponential_mechanism",
    "information_bottleneck",
]

Array = NDArray[np.float64]

_BITS = 62  # of a probability: integers whose sum, 2^62, and differences fit 63 bits
_WHOLE = 1 << _BITS
#: Logarithms of quotients of 62-bit integers, and sums of a few thousand products.
_UP = 1 + 2.0**-48
#: Error of a sum of excesses in doubles: 3 roundings of parts that sum to 2 at most.
_ROUGH = 2.0**-48
_EXACT_TERMS = 2_000_000  # summed in Python's integers: beyond, in doubles with their error
_LARGEST_EPSILON = 60.0  # e^60 > 2^62: all that is larger is the same
#: Bits after the point of e^epsilon, rounded down.
_FACTOR_BITS = 120


class Channel:
    """P(z | x) for finite alphabets, exact for the bits drawn.

    **Guarantees.** A draw with the operating system's randomness (no ``key``) has exactly the
    law ``weights / 2^62``. `epsilon` and `delta` are those of that law for any two inputs
    (local model: one record, one guarantee), rounded up by less than a relative 1e-14. A
    probability given as positive stays positive (at least 2^-62), so that a finite epsilon
    stays finite; rounding moves each probability by at most 2^-62 otherwise, a row's largest by
    the sum of those.

    Parameters
    ----------
    matrix : array (n_x, n_z)
        Rows of probabilities, each summing to 1 within 1e-6.

    Attributes
    ----------
    weights : array (n_x, n_z) of int64
    """

    def __init__(self, matrix: ArrayLike) -> None:
        table = np.asarray(matrix, dtype=np.float64)
        if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
            raise ValueError("matrix must be a table of probabilities, none below 0")
        if np.abs(table.sum(1) - 1).max() > 1e-6:
            raise ValueError("each row of matrix must sum to 1")
        self.weights = _weights(table / table.sum(1, keepdims=True), table > 0)

    @classmethod
    def from_log(cls, log_matrix: ArrayLike) -> Channel:
        """From log P(z | x), -inf for 0: a probability too small for a double stays above 0."""
        logs = np.asarray(log_matrix, dtype=np.float64)
        if logs.ndim != 2 or not logs.size or np.isnan(logs).any() or (logs == np.inf).any():
            raise ValueError("log_matrix must be a table of logarithms, none NaN or infinite")
        if np.isneginf(logs).all(1).any():
            raise ValueError("each row of log_matrix must have a finite entry")
        made = cls.__new__(cls)
        made.weights = _weights(np.exp(normalised(logs)), np.isfinite(logs))
        return made

    @property
    def matrix(self) -> Array:
        """The probabilities as doubles."""
        table: Array = self.weights / float(_WHOLE)
        return table

    @property
    def shape(self) -> tuple[int, int]:
        """(n_x, n_z)."""
        return self.weights.shape[0], self.weights.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.matrix if dtype is None else self.matrix.astype(dtype)

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, key: Any) -> Any:
        return self.matrix[key]

    def __repr__(self) -> str:
        return f"Channel({self.shape[0]} inputs, {self.shape[1]} outputs, epsilon={self.epsilon()})"

    def epsilon(self) -> float:
        """max over outputs and pairs of inputs of log P(z | x) / P(z | x'), rounded up.

        Infinite where an output is possible for one input and not for another.
        """
        worst = 0.0
        for column in self.weights.T:
            high, low = int(column.max()), int(column.min())
            if high and not low:
                return math.inf
            if high > low:
                # Both are integers: their difference is exact, so a small epsilon is too.
                worst = max(worst, math.log1p((high - low) / low))
        return worst * _UP

    def delta(self, epsilon: float) -> float:
        """max over pairs of inputs of sum_z (P(z | x) - e^epsilon P(z | x'))_+, rounded up.

        Doubles choose the pairs, integers decide: exact to the last bit, up to 2e6 terms; with
        more pairs than that at the top, the doubles' value and its error (1e-14) are added.
        """
        # Above 2^62, beyond any quotient of weights, only what the other lacks is left.
        growth = math.expm1(min(_validate.nonnegative("epsilon", epsilon), _LARGEST_EPSILON))
        rough = np.array([self._excess(row, growth) for row in self.weights])
        near = np.argwhere(rough >= rough.max() - 2 * _ROUGH)
        if len(near) * self.shape[1] > _EXACT_TERMS:
            return min(1.0, float(rough.max()) + _ROUGH)
        factor = _exp_below(epsilon)
        most = max(self._exact_excess(int(i), int(j), factor) for i, j in near)
        whole = _WHOLE << _FACTOR_BITS
        return math.nextafter(most / whole, 2.0) if most else 0.0

    def _excess(self, row: NDArray[np.int64], growth: float) -> Array:
        """sum (w - (1 + growth) w')_+ of one row against every other, in doubles."""
        over = (row - self.weights) - growth * self.weights
        total: Array = np.maximum(over, 0.0).sum(1) / _WHOLE
        return total

    def _exact_excess(self, one: int, other: int, factor: int) -> int:
        pairs = zip(self.weights[one].tolist(), self.weights[other].tolist(), strict=True)
        return sum(max(0, (a << _FACTOR_BITS) - factor * b) for a, b in pairs)

    def draw(self, x: ArrayLike, *, key: bytes | None = None) -> NDArray[np.int64]:
        """A release for each input letter.

        Parameters
        ----------
        x : array (n,) of int, row numbers; one outside the alphabet counts as the nearest in it
        key : bytes, optional
            For tests: bits from it instead of the operating system. Not private.
        """
        rows = np.asarray(x)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError("x must be a sequence of row numbers")
        rows = np.clip(rows, 0, len(self.weights) - 1)  # an error would tell of one letter
        source = secrets.token_bytes if key is None else _stream(key)
        bits = np.frombuffer(source(8 * rows.size), dtype=np.uint64) >> np.uint64(64 - _BITS)
        ends = np.cumsum(self.weights, 1)  # of integers: exact
        drawn = bits.astype(np.int64)
        # Every output is compared, whatever the input: the time does not depend on it.
        return (ends[rows] <= drawn[:, None]).sum(1)


@dataclass(frozen=True)
class BlahutArimoto:
    """A rate-distortion channel: nats, and the certified gap of rate + beta distortion."""

    rate: float
    distortion: float
    gap: float
    channel: Channel
    output: Array


@dataclass(frozen=True)
class BottleneckChannel:
    """A bottleneck channel: I(T; X), I(T; Y), and how far its Lagrangian can be from the least."""

    rate: float
    relevance: float
    gap: float
    channel: Channel


def blahut_arimoto(
    p: ArrayLike, cost: ArrayLike, beta: float, *, tolerance: float = 1e-12
) -> BlahutArimoto:
    """The channel that minimises I(X; T) + beta E cost.

    **Guarantees.** The Lagrangian is within ``gap`` nats of the least (for every output law
    that is possible). The channel's own ``epsilon()`` is exact, and at most 2 beta times the
    cost's largest range: but the law p and the cost must be public.

    Parameters
    ----------
    p : array (n_x,), the law of the source
    cost : array (n_x, n_t)
    beta : float, 0 or above
        Price of the cost, nats per unit.

    Returns
    -------
    BlahutArimoto
        With ``rate`` (nats), ``distortion``, ``gap``, ``channel``.

    Source: Blahut 1972; Arimoto 1972; gap: Csiszar & Tusnady 1984; Köhler (2.14).
    """
    law = _law("p", p)
    table = _table("cost", cost, len(law))
    price = _validate.nonnegative("beta", beta)
    seen = law > 0
    found = least_leakage(Law(law[seen], None, table[seen]), multiplier=price, tolerance=tolerance)
    output = law[seen] @ np.exp(found.log_channel)
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(output < 2.0**-_BITS, 0.0, output)) - price * table
    return BlahutArimoto(
        max(0.0, found.leakage), found.distortion, found.gap, Channel.from_log(logs), output
    )


def information_bottleneck(
    p_xy: ArrayLike,
    beta: float,
    letters: int | None = None,
    *,
    restarts: int = 8,
    seed: int = 0,
) -> BottleneckChannel:
    """A channel that minimises I(T; X) - beta I(T; Y): the best of several local optima.

    **Guarantees.** ``gap`` bounds how far that is from the global optimum over outputs of any
    size; it is proved by branch and bound, tight for up to three or four letters x, and
    loose beyond.

    Parameters
    ----------
    p_xy : array (n_x, n_y)
        Joint probabilities.
    beta : float, 0 or above
    letters : int, optional
        Size of the output alphabet; n_x if left out.
    restarts : int
        Random starts beside the two that are always tried.
    seed : int
        Of those.

    Source: Tishby, Pereira & Bialek 1999.
    """
    joint = np.asarray(p_xy, dtype=np.float64)
    if joint.ndim != 2:
        raise ValueError("p_xy must be a table of probabilities")
    _law("p_xy", joint.ravel())
    joint = joint / joint.sum()
    source = joint.sum(1)
    seen = source > 0
    size = int(seen.sum()) if letters is None else _validate.whole("letters", letters, least=1)
    law = Law(
        source[seen],
        None,
        np.zeros((int(seen.sum()), size)),
        (joint[seen] / source[seen, None]).T,
        _validate.nonnegative("beta", beta),
    )
    found = best_of(law, restarts, seed)
    logs = np.full((len(source), size), -math.log(size))  # a letter that never comes: any row
    logs[seen] = _without_dead(found.log_channel, source[seen])
    logs[~seen] = logs[seen][0]
    return BottleneckChannel(
        max(0.0, found.leakage),
        max(0.0, found.relevance),
        proved_gap(law, found),
        Channel.from_log(logs),
    )


def exponential_mechanism(cost: ArrayLike, beta: float, prior: ArrayLike | None = None) -> Channel:
    """P(t | x) proportional to prior(t) exp(-beta cost(x, t)).

    Parameters
    ----------
    cost : array (n_x, n_t)
    beta : float, 0 or above
    prior : array (n_t,), optional
        Public; uniform if left out.
    """
    table = _table("cost", cost)
    price = _validate.nonnegative("beta", beta)
    weight = np.ones(table.shape[1]) if prior is None else _law("prior", prior)
    if len(weight) != table.shape[1]:
        raise ValueError(f"prior must have {table.shape[1]} entries, got {len(weight)}")
    with np.errstate(divide="ignore"):
        return Channel.from_log(np.log(weight) - price * table)


def _exp_below(epsilon: float) -> int:
    """floor(2^120 e^epsilon), or a little less: decimal's exp is correctly rounded."""
    with decimal.localcontext() as context:
        context.prec = 80
        value = decimal.Decimal(min(epsilon, _LARGEST_EPSILON)).exp() * (1 << _FACTOR_BITS)
    return int(value) - 1


def _without_dead(log_channel: Array, source: Array) -> Array:
    dead = source @ np.exp(log_channel) < 2.0**-_BITS
    return np.where(dead, -np.inf, log_channel)


def _weights(table: Array, possible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Integers in the rows' proportions, summing to 2^62: the largest takes the rounding."""
    scaled = np.rint(table * float(_WHOLE)).astype(np.int64)
    weights = np.where(possible, np.maximum(scaled, 1), 0)
    for row in weights:
        row[row.argmax()] += _WHOLE - sum(int(value) for value in row)
    return weights


def _stream(key: bytes) -> Callable[[int], bytes]:
    seed = int.from_bytes(key, "little")
    return np.random.Generator(np.random.PCG64(seed)).bytes


def _law(name: str, value: ArrayLike) -> Array:
    law = _validate.vector(name, value)
    if (law < 0).any() or abs(float(law.sum()) - 1) > 1e-6:
        raise ValueError(f"{name} must hold probabilities that sum to 1")
    return law / law.sum()


def _table(name: str, value: ArrayLike, rows: int | None = None) -> Array:
    table = np.asarray(value, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(f"{name} must be a finite table")
    if rows is not None and len(table) != rows:
        raise ValueError(f"{name} must have {rows} rows, got {len(table)}")
    return table
