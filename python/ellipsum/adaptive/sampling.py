"""What sampling adds to the error of a law's mean: bounds of the rows' second moments.

A plan measures E abs(y_j) of every coordinate, and how many rows lie how far out: no squares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .domain import Domain
from .outcome import Counts, Outcome, Round

__all__ = ["sampling_sd", "second_moments"]

Array = NDArray[np.float64]

#: Noise deviations that are added to what a histogram says. Of some twenty sums of it, nearly all
#: of their noise in common, the one with the lowest bound is taken.
_HISTOGRAM = 2.0


def sampling_sd(outcome: Outcome, domain: Domain) -> Array:
    """Standard error of the mean of the present cells, shape (d,), data units: no less than
    what the rows show."""
    variance = np.full(outcome.offset.size, np.inf)
    for found in outcome.rounds:
        variance = np.minimum(variance, second_moments(found, outcome.cells.present))
    count = max(outcome.count, 1) * outcome.cells.present
    return domain.rotated(np.sqrt(np.maximum(variance, 0) / count))


def second_moments(found: Round, present: Array) -> Array:
    """Bounds of E y_j^2 over a round's clipped rows with a cell there, (d,), along the axes.

    With m = min(t, C), every abs(b_j y_j) <= m, and sum_j (b_j y_j)^2 = m^2 (docs/adaptive.md):

    E (b_j y_j)^2 <= s E abs(b_j y_j) + E (m^2 - s m)+ for every s up to C, and
    E (b_j y_j)^2 <= E m^2 - sum over other i of (E abs(b_i y_i))^2.

    A mean absolute deviation counts with one deviation of its noise, up or down.

    Parameters
    ----------
    found : Round
    present : array (d,), shares of present cells

    Returns
    -------
    array (d,), the domain's units, squared
    """
    scale, radius = found.scale, found.tail.radius
    upper, lower = (np.maximum(found.deviation + sign * found.sd, 0) * scale for sign in (1, -1))
    bound = np.minimum(radius * upper, (scale * found.reach) ** 2)
    if found.tail.counts is not None:
        counts = found.tail.counts
        for start in counts.edges[counts.edges < radius]:
            bound = np.minimum(bound, start * upper + _beyond(counts, radius, start) / present)
        others = (present * lower) ** 2
        rest = _beyond(counts, radius, 0.0) - (np.sum(others) - others)
        bound = np.minimum(bound, np.maximum(rest / present, lower**2))
    return np.asarray(bound / scale**2)


def _beyond(counts: Counts, radius: float, start: float) -> float:
    """At least E (m^2 - start m)+, scaled units squared: every row at its bin's upper edge.

    ``radius`` is C, ``start`` from 0 to C, both in the unit of the counts' edges.
    """
    m = np.minimum(counts.edges, radius)
    most = m * np.maximum(m - start, 0.0)
    return max(float(most @ counts.share + _HISTOGRAM * counts.sd * np.linalg.norm(most)), 0.0)
