"""How far a plan's answer may be off: noise, what the clips took, missing cells, sampling.

No interval can be narrow and hold for *every* table in the box: rows that the noise hides,
about 1/mu of them, may lie at its edge, and move the mean by their share of its width. What is
assumed, and where nothing is, is in docs/adaptive.md.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from .domain import Domain
from .excess import FOLLOWED, POWERS, Excess, seen_apart
from .outcome import Outcome, Round
from .sampling import sampling_sd

__all__ = [
    "INTERVALS",
    "answer",
    "averaged",
    "contradicted",
    "counted",
    "half_widths",
    "lost",
    "lost_per_excess",
]

Array = NDArray[np.float64]

#: What an interval may speak of.
INTERVALS = ("noise", "rows", "population")


#: A spread to both sides stands out where it is so many times C times the share of rows that may
#: lie beyond C unseen. About their common mean they and the others make twice that.
_BOTH_SIDES = 2.5

#: A region that becomes so many times larger: what was clipped before was clipped too much.
_GROWTH = 2.0

#: Means of two rounds contradict each other where they are so many noise deviations apart.
_CONTRADICTION = 3.5

#: Means of two rounds differ where their distance, in noise variances, is so many of its deviations
#: above what noise makes of it.
_DIFFERENT = 1.0

#: The rows beyond the clips may have so many times a coordinate's usual part of their distance.
_LARGER_PART = 3.0


def lost(found: Round, domain: Domain, z: float, part: Array, present: Array) -> Array:
    """How far the clips of a round may have moved each coordinate, data units, times ``part``.

    z deviations upwards of what the histogram says: for rounds of which the excess says nothing.

    Parameters
    ----------
    found : Round
    domain : Domain
    z : float
    part : array (d,), the round's weights along the axes
    present : array (d,), shares of present cells
    """
    tail = found.tail
    seen = (tail.expected + z * tail.sd) * _direction(found) / found.scale
    unseen = max(tail.beyond, 0.0) + z * tail.beyond_sd
    anywhere = min(unseen, 1.0) * found.reach
    known = _stands_out(found, unseen, present)
    return _along(domain, part / present, known, np.minimum(seen, anywhere), anywhere)


def counted(found: Round, domain: Domain, part: Array, present: Array) -> tuple[Array, Array]:
    """(how far the clips of a round may have moved each coordinate, its noise), times ``part``,
    data units: by its histogram, and nothing assumed.

    A row's loss has the length (t - C)+ in scaled units, so that no coordinate loses more; every
    row counts at its bin's upper edge. Parameters as for :func:`lost`.
    """
    counts = found.tail.counts
    if counts is None:  # nothing is clipped
        return np.zeros(part.size), np.zeros(part.size)
    over = np.maximum(counts.edges - found.tail.radius, 0.0)
    most = np.array([max(float(over @ counts.share), 0.0), counts.sd * float(np.linalg.norm(over))])
    nowhere, anywhere = np.zeros(part.size, dtype=bool), most[:, None] / found.scale
    taken, noise = (_along(domain, part / present, nowhere, each, each) for each in anywhere)
    return taken, noise


def lost_per_excess(
    found: Round,
    excess: Excess,
    domain: Domain,
    known: NDArray[np.bool_],
    part: Array,
    present: Array,
) -> tuple[Array, ...]:
    """As :func:`lost`, for each unit of the excess that hides in its noise, and that is seen.

    Nothing where it says nothing of this round.

    About another centre and in another scale: t' <= a t + s, with a the largest ratio of the
    scales and s the scaled way between the centres, so that C' clips what (C' - s)/a clips of t,
    a times. Of an axis that is not ``known``, a row beyond the ramp may lie anywhere in
    the domain.
    """
    ratio = float(np.max(found.scale / excess.scale))
    away = float(np.linalg.norm(found.scale * (excess.center - found.mean + found.shift)))
    radius, ramp = (found.tail.radius - away) / ratio, excess.ramp
    if radius < ramp.start * (1 - 1e-9):
        return ()
    anywhere = np.maximum(found.reach, ratio * ramp.length / found.scale)
    radius = min(radius, FOLLOWED * ramp.start)
    most = ratio * _direction(found) / found.scale
    laws = [np.minimum(most * ramp.clipped(radius, power), anywhere) for power in POWERS]
    return tuple(_along(domain, part / present, known, seen, anywhere) for seen in laws)


def _direction(found: Round) -> Array:
    """The most that a coordinate has of the rows' distance."""
    usual = found.scale * (found.deviation + found.sd)
    return np.clip(_LARGER_PART * usual / np.linalg.norm(usual), 0, 1)


def _stands_out(found: Round, unseen: float, present: Array) -> NDArray[np.bool_]:
    """Whether a coordinate spreads to both sides by more than unseen rows could make of it."""
    both_sides = np.maximum(found.deviation - np.abs(found.shift), 0)
    wide = found.scale * both_sides * present >= _BOTH_SIDES * found.tail.radius * unseen
    return np.asarray(wide & (not found.tail.coarse))


def _along(
    domain: Domain, part: Array, known: NDArray[np.bool_], seen: Array, anywhere: Array
) -> Array:
    """Losses along the axes as those of the coordinates, data units."""
    own = domain.rotated(part * np.where(known, seen, 0.0))
    rest = part * np.where(known, 0.0, anywhere)
    rotated = rest if domain.basis is None else np.abs(domain.basis) @ rest
    return np.asarray(own + domain.unit * rotated)


def contradicted(rounds: list[Round]) -> Array:
    """How far each round's mean is from those of rounds with far larger regions, where noise and
    what those may have lost do not explain it: what its clips took. Shape (rounds, d)."""
    means, sds = np.array([each.mean for each in rounds]), np.array([each.sd for each in rounds])
    own = np.array([(each.tail.expected + 2 * each.tail.sd) / each.scale for each in rounds])
    size, coarse = _size(rounds), np.array([each.tail.coarse for each in rounds])
    found = np.empty_like(means)
    for i in range(len(rounds)):  # one by one: memory for each round, not for each pair
        larger = (size > size[i] + math.log(_GROWTH)) & ~coarse
        apart = np.abs(means[i] - means)
        explained = _CONTRADICTION * np.hypot(sds[i], sds) + own
        found[i] = np.max(np.where(larger[:, None] & (apart > explained), apart, 0.0), axis=0)
    return found


def _size(rounds: list[Round]) -> Array:
    """Logarithm of the mean half axis of each region."""
    return np.array([math.log(each.tail.radius) - np.mean(np.log(each.scale)) for each in rounds])


def answer(rounds: list[Round], half: Array) -> tuple[Array, Array]:
    """(mean, its noise) along the axes: of all rounds but the first, whose clips may have taken
    anything, and of the domain, which counts as an observation of its centre.

    By precision, where what contradicts a round counts as noise of its own. Rounds before a region
    that had to grow count where its mean is theirs: then no rows lie out there to one side, or what
    a histogram showed there was noise.
    """
    rounds, weights = _precisions(rounds)
    total = 1 / half**2 + np.sum(weights, axis=0)
    mean = np.sum(weights * np.array([each.mean for each in rounds]), axis=0) / total
    noise = np.sum(weights**2 * np.array([each.sd**2 for each in rounds]), axis=0)
    return mean, np.sqrt(noise + 1 / half**2) / total


def averaged(rounds: list[Round]) -> tuple[Array, Array]:
    """As :func:`answer`, without the domain; of noise what contradicts a round is a part."""
    rounds, weights = _precisions(rounds)
    total = np.sum(weights, axis=0)
    mean = np.sum(weights * np.array([each.mean for each in rounds]), axis=0) / total
    return mean, 1 / np.sqrt(total)


def _precisions(rounds: list[Round]) -> tuple[list[Round], Array]:
    """The rounds that count, and their weights."""
    rounds = [each for each in rounds if not each.tail.coarse] or rounds
    return rounds, _weights(rounds, _different(rounds))


def _weights(rounds: list[Round], counts: NDArray[np.bool_] | None = None) -> Array:
    """Precisions; next to none for rounds before a region that had to grow, if that one ``counts``
    against them (all do where it is None), (rounds, rounds)."""
    noise = np.array([each.sd**2 for each in rounds]) + contradicted(rounds) ** 2
    grown = _grown(rounds) if counts is None else _grown(rounds) & counts
    dismissed = np.any(grown, axis=1)[:, None]
    return np.where(dismissed, 1e-9 * np.min(1 / noise, axis=0), 1 / noise)


def _grown(rounds: list[Round]) -> NDArray[np.bool_]:
    """Whether the region of a round (second axis) is a later, far larger one than another's."""
    size = _size(rounds)
    return np.triu(size[None] > size[:, None] + math.log(_GROWTH), 1)


def _different(rounds: list[Round]) -> NDArray[np.bool_]:
    """Whether the means of two rounds differ by more than their noise, all axes together."""
    means, sds = np.array([each.mean for each in rounds]), np.array([each.sd for each in rounds])
    d, variances = means.shape[1], sds**2
    each = zip(means, variances, strict=True)
    apart = [
        np.sum((means - mean) ** 2 / (variances + variance), axis=1) for mean, variance in each
    ]
    return np.asarray(np.array(apart) > d + _DIFFERENT * math.sqrt(2 * d))


def half_widths(
    outcome: Outcome, domain: Domain, of: str, level: float
) -> tuple[Array, Array, Array]:
    """(point, half width, what the clips may have moved it by), for the mean, data units.

    A loss b of at most B, known as B + N', beside a noise N: |N + b| exceeds B + N' + z times the
    deviation of N - N' to either side with (1 - level)/2 at most. The rounds from k on are
    averaged, and judged by the excess, by their histograms or by the laws fitted to these, as makes
    a coordinate's interval the shortest: early rounds have little weight, and may have lost much.

    Parameters
    ----------
    outcome : Outcome of at least one round
    domain : Domain
    of : ``"rows"`` or ``"population"``
    level : float in (0, 1)
    """
    d, rounds = outcome.offset.size, outcome.rounds
    z = float(scipy.special.ndtri((1 + level) / 2))
    point, width, moved = np.zeros(d), np.full(d, np.inf), np.zeros(d)
    sampled = sampling_sd(outcome, domain) if of == "population" else np.zeros(d)
    weights, apart = _weights(rounds), contradicted(rounds)
    means, sds = np.array([each.mean for each in rounds]), np.array([each.sd for each in rounds])
    shifts = np.array([each.shift for each in rounds])
    few = outcome.cells.too_few(z, max(outcome.count, 1))
    if domain.basis is not None:  # axes count cells of all coordinates
        few = np.maximum(few / outcome.cells.present * np.max(outcome.cells.present), 1.0)
    explained = _explained(outcome)
    judges = [_by_counts]
    if outcome.excess is not None:
        judges.append(partial(_by_excess, outcome.excess, explained))
    if explained:  # else the histograms' laws are wrong
        judges.append(_by_laws)
    for k in range(len(rounds)):
        parts = weights[k:] / np.sum(weights[k:], axis=0)
        moves = domain.rotated(np.sum(parts * apart[k:], axis=0))
        holes = _holes(outcome, domain, z, parts, shifts[k:])
        noise = domain.rotated(np.sqrt(np.sum((parts * sds[k:]) ** 2, axis=0)))
        mean = domain.back(np.sum(parts * means[k:], axis=0))
        for judge in judges:
            taken, uncertain = judge(outcome, domain, z, k, parts)
            clipped = moves + taken
            half = z * np.sqrt(noise**2 + sampled**2 + uncertain**2) + clipped
            half = few * half + holes
            best = half < width
            point[best] = mean[best]
            width[best], moved[best] = half[best], (few * (clipped + z * uncertain))[best]
    return point, width, moved


def _holes(outcome: Outcome, domain: Domain, z: float, parts: Array, shifts: Array) -> Array:
    """How far the shares of present cells leave the average of the rounds open, data units.

    A round's cells add up to ``sums`` from its centre, and their mean lies sums/p from there. The
    answer has another p: its error is linear in 1/p.

    Parameters
    ----------
    outcome : Outcome
    domain : Domain
    z : float
    parts, shifts : arrays (rounds, d), weights and shifts of rounds, along the axes
    """
    cells, basis = outcome.cells, domain.basis
    least, most = cells.inverse(z, outcome.count_sd == 0, max(outcome.count, 1))
    moved = np.sum(parts * shifts, axis=0)
    if basis is None:
        ends = [np.abs(moved * (cells.present * each - 1)) for each in (least, most)]
        return np.asarray(domain.unit * np.maximum(*ends))
    sums = (cells.present * shifts) @ basis.T  # of the coordinates
    slope = basis @ ((parts.T @ sums) * basis.T)
    middle = np.abs(slope @ (least + most) / 2 - basis @ moved)
    return np.asarray(domain.unit * (middle + np.abs(slope) @ (most - least) / 2))


def _explained(outcome: Outcome) -> bool:
    """Whether excess and last histogram allow for what is assumed of rows far out."""
    counts = outcome.rounds[-1].tail.counts
    if outcome.excess is None or counts is None:
        return True
    return outcome.excess.explains(counts.edges, counts.share, counts.sd)


# ---- what the clips of the rounds from k on may have taken, and its noise, data units ------


def _by_counts(
    outcome: Outcome, domain: Domain, z: float, k: int, parts: Array
) -> tuple[Array, Array]:
    """By each round's own histogram, with nothing assumed of what lies where in the box."""
    present = outcome.cells.present
    each = [
        counted(found, domain, part, present)
        for found, part in zip(outcome.rounds[k:], parts, strict=True)
    ]
    taken, noise = np.array(each).transpose(1, 0, 2)
    return np.asarray(np.sum(taken, axis=0)), np.asarray(np.linalg.norm(noise, axis=0))


def _by_laws(
    outcome: Outcome, domain: Domain, z: float, k: int, parts: Array
) -> tuple[Array, Array]:
    """By the laws that were fitted to each round's histogram."""
    present, taken = outcome.cells.present, np.zeros(outcome.offset.size)
    for found, part in zip(outcome.rounds[k:], parts, strict=True):
        taken += lost(found, domain, z, part, present)
    return taken, np.zeros(taken.size)


def _by_excess(
    excess: Excess,
    explained: bool,
    outcome: Outcome,
    domain: Domain,
    z: float,
    k: int,
    parts: Array,
) -> tuple[Array, Array]:
    """By the excess; rounds that clip closer than its ramp by their histograms."""
    d, present, last = outcome.offset.size, outcome.cells.present, outcome.rounds[-1]
    fixed, slopes = np.zeros(d), np.zeros((2, d))
    # it counts in the scale of the last round: there the spread must show
    most = max(excess.share, 0.0) + z * excess.sd
    known = _stands_out(last, excess.beyond(last.tail.radius, most), present) & explained
    for found, part in zip(outcome.rounds[k:], parts, strict=True):
        per = lost_per_excess(found, excess, domain, known, part, present)
        if per:
            slopes += per
        else:
            fixed += lost(found, domain, z, part, present)
    hidden, seen = seen_apart(excess.share, excess.sd)
    return fixed + slopes[0] * hidden + slopes[1] * seen, slopes[0] * excess.sd
