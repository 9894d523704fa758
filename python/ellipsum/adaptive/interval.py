"""How far a plan's answer may be off: noise, what the clips took, missing cells, sampling.

No interval can be narrow and hold for *every* table in the box: rows that the noise hides,
about 1/mu of them, may lie at its edge, and move the mean by their share of its width. What is
assumed, and where nothing is, is in docs/adaptive.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .domain import Domain
from .outcome import Outcome, Round

__all__ = ["INTERVALS", "answer", "contradicted", "half_widths", "lost", "sampling_sd"]

Array = NDArray[np.float64]

#: What an interval may speak of.
INTERVALS = ("noise", "rows", "population")


#: A spread stands out where it is so many times what rows that were not seen could make of it.
_STANDS_OUT = 1.5

#: A region that becomes so many times larger: what was clipped before was clipped too much.
_GROWTH = 2.0

#: Means of two rounds contradict each other where they are so many noise deviations apart.
_CONTRADICTION = 3.5

#: The rows beyond the clips may have so many times a coordinate's usual part of their distance.
_LARGER_PART = 3.0


def lost(found: Round, domain: Domain, z: float, part: Array, present: Array) -> Array:
    """How far the clips of a round may have moved each coordinate, data units, times ``part``.

    z deviations upwards of what the histogram says. Of an axis whose spread stands out, the
    scaled loss, all of it in this direction; of another one, rows that were not
    seen may lie anywhere in the domain.

    Parameters
    ----------
    found : Round
    domain : Domain
    z : float
    part : array (d,), the round's weights along the axes
    present : array (d,), shares of present cells
    """
    tail = found.tail
    direction = found.scale * (found.deviation + found.sd)
    direction = np.clip(_LARGER_PART * direction / np.linalg.norm(direction), 0, 1)
    seen = (tail.expected + z * tail.sd) * direction / found.scale
    unseen = max(tail.beyond, 0.0) + z * tail.beyond_sd
    anywhere = min(unseen, 1.0) * found.reach
    both_sides = np.maximum(found.deviation - np.abs(found.shift), 0)
    hidden = _STANDS_OUT * tail.radius * unseen
    stands_out = found.scale * both_sides * present >= hidden
    stands_out &= not tail.coarse
    part = part / present
    known = domain.turned(part * np.where(stands_out, np.minimum(seen, anywhere), 0.0))
    basis = np.eye(1) if domain.basis is None else domain.basis
    rest = part * np.where(stands_out, 0.0, anywhere)
    turned = rest if domain.basis is None else np.abs(basis) @ rest
    return np.asarray(known + domain.unit * turned)


def contradicted(rounds: list[Round]) -> Array:
    """How far each round's mean is from those of rounds that clipped less, where that is more
    than their noise explains: what its clips took. Shape (rounds, d)."""
    means, sds, size = (
        np.array(values)
        for values in zip(
            *((each.mean, each.sd, each.tail.radius / each.scale) for each in rounds), strict=True
        )
    )
    apart = np.abs(means[:, None] - means[None])
    noise = np.hypot(sds[:, None], sds[None])
    against = (size[None] > size[:, None]) & (apart > _CONTRADICTION * noise)
    return np.asarray(np.max(np.where(against, apart, 0.0), axis=1))


def answer(rounds: list[Round], half: Array) -> tuple[Array, Array]:
    """(mean, its noise) along the axes: of all rounds but the first, whose clips may have taken
    anything, and of the domain, which counts as an observation of its centre.

    By precision, where what contradicts a round counts as noise of its own.
    """
    rounds = [each for each in rounds if not each.tail.coarse] or rounds
    weights = _weights(rounds)
    total = 1 / half**2 + np.sum(weights, axis=0)
    mean = np.sum(weights * np.array([each.mean for each in rounds]), axis=0) / total
    noise = np.sum(weights**2 * np.array([each.sd**2 for each in rounds]), axis=0)
    return mean, np.sqrt(noise + 1 / half**2) / total


def _weights(rounds: list[Round]) -> Array:
    """Precisions; next to none for rounds before a region that had to grow."""
    size = np.array([each.tail.radius / each.scale for each in rounds])
    later = np.maximum.accumulate(size[::-1], axis=0)[::-1]
    noise = np.array([each.sd**2 for each in rounds]) + contradicted(rounds) ** 2
    return np.where(later > _GROWTH * size, 1e-9 * np.min(1 / noise, axis=0), 1 / noise)


def half_widths(
    outcome: Outcome, domain: Domain, of: str, level: float
) -> tuple[Array, Array, Array]:
    """(point, half width, what the clips may have moved it by), for the mean, data units.

    The noise and the clips have half of 1 - level each. The rounds from k on are averaged, with
    the k that makes a coordinate's interval the shortest: early rounds have little weight, and
    may have lost much.

    Parameters
    ----------
    outcome : Outcome of at least one round
    domain : Domain
    of : ``"rows"`` or ``"population"``
    level : float in (0, 1)
    """
    d, rounds = outcome.offset.size, outcome.rounds
    z_noise, z_lost = float(ndtri((3 + level) / 4)), float(ndtri((1 + level) / 2))
    point, width, moved = np.zeros(d), np.full(d, np.inf), np.zeros(d)
    sampled = sampling_sd(outcome, domain) if of == "population" else np.zeros(d)
    present, off = outcome.cells.present, outcome.cells.sd
    weights, apart = _weights(rounds), contradicted(rounds)
    means, sds = np.array([each.mean for each in rounds]), np.array([each.sd for each in rounds])
    shifts = np.array([each.shift for each in rounds])
    for k in range(len(rounds)):
        parts = weights[k:] / np.sum(weights[k:], axis=0)
        clipped = domain.turned(np.sum(parts * apart[k:], axis=0))
        for each, part in zip(rounds[k:], parts, strict=True):
            clipped = clipped + lost(each, domain, z_lost, part, present)
        holes = domain.turned(z_noise * off / present * np.abs(np.sum(parts * shifts[k:], axis=0)))
        noise = domain.turned(np.sqrt(np.sum((parts * sds[k:]) ** 2, axis=0)))
        half = z_noise * np.hypot(noise, sampled) + clipped + holes
        best = half < width
        point[best] = domain.back(np.sum(parts * means[k:], axis=0))[best]
        width[best], moved[best] = half[best], clipped[best]
    return point, width, moved


def sampling_sd(outcome: Outcome, domain: Domain) -> Array:
    """Standard error of the mean of the present cells, shape (d,), data units: no less than
    what the rows show.

    E y_j^2 <= C E abs(y_j) for clipped rows, and the deviation is one noise deviation up.
    """
    variance = np.full(outcome.offset.size, np.inf)
    for found in outcome.rounds:
        deviation = found.deviation + found.sd
        bound = np.minimum(found.tail.radius * deviation / found.scale, found.reach**2)
        variance = np.minimum(variance, bound)
    count = max(outcome.count, 1) * outcome.cells.present
    return domain.turned(np.sqrt(np.maximum(variance, 0) / count))
