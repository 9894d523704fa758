"""Mean and covariance of many records from their releases, the noise taken out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RecordMoments", "record_moments"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RecordMoments:
    """Estimates from n released records, data units; standard errors are of sampling and noise.

    ``mean`` (d,), ``mean_se`` (d,), ``covariance`` (d, d), unbiased but not always positive
    semidefinite, ``covariance_se`` (d, d), ``n``; ``columns``, the coordinates' names, or None.
    """

    mean: Array
    mean_se: Array
    covariance: Array
    covariance_se: Array
    n: int
    columns: tuple[str, ...] | None = None


def record_moments(
    t: Array, center: Array, back: Array, along: float, noise: float
) -> RecordMoments:
    """E t t^T = along E y y^T + noise I, t unbiased for y, x = center + back y.

    Parameters
    ----------
    t : array (n, r), n >= 2; center : array (d,); back : array (d, r)
    along, noise : float
    """
    n = len(t)
    if n < 2 or not np.isfinite(t).all():
        raise ValueError("released must have at least two rows, all finite")
    mean = t.mean(axis=0)
    centered = t - mean
    scatter = centered.T @ centered / (n - 1)
    product = np.outer(mean, mean) - scatter / n  # unbiased for E y E y^T
    inner = (scatter + product - noise * np.eye(t.shape[1])) / along - product
    moved = centered @ back.T
    mean_se = np.sqrt(np.maximum((moved**2).sum(axis=0) / (n - 1) / n, 0.0))
    square = moved**2
    spread = square.T @ square / n - (moved.T @ moved / n) ** 2
    se = np.sqrt(np.maximum(spread, 0.0) / n) / along
    return RecordMoments(center + back @ mean, mean_se, back @ inner @ back.T, se, n)
