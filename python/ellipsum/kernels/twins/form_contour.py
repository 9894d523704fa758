"""Twin of ``contour.cpp``, and of the integrand in ``kernels.cpp``: one integral, and its nodes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .form_saddle import INFINITY, find_saddle, slope_off_axis
from .jit import jit

LOG2 = math.log(2.0)
TAIL, EXCESS, ROOT, SHORTFALL, HOCKEY_STICK = 0, 1, 2, 3, 4  # moments
# The path and the rule: as in contour.cpp, with their reasons.
_LARGEST_WIDTH = 3.0  # in standard deviations
_BEND_FACTOR = 1.5  # bend against that of steepest descent at the saddle
_LEAST_BEND, _OPPOSED_BEND = 0.1, 0.5
_LARGEST_BEND, _LARGEST_BEND_NORMAL = 1.0, 0.7
_MOST_DOUBLINGS = 400
_FIRST_STEP = 0.09  # of the trapezoid rule in u
_BLOCK = 8
_NEGLIGIBLE = 1e-17  # a node against the largest
_LARGEST_U = 690.0  # where sinh u nears overflow
_FIRST_BUDGET, _MOST_NODES = 1 << 14, 200000
_MET = 1e-10  # error at which no other path is tried
_CHERNOFF_SLACK = 1e-6
_MIDPOINTS = 13  # of gauss_cauchy, to x = 6.25
_HUGE_FACTOR = 1e150  # above, squares would overflow
_LARGEST_LOG = 700.0  # of a node's size


class Decay(NamedTuple):
    """Of a distribution that is no Form: what the choice of a path asks."""

    normal_sd: float
    total_dof: float


class Path(NamedTuple):
    """t = t0 + bend (sqrt(radius^2 + Y^2) - radius) + iY, Y = width sinh u."""

    width: float
    bend: float
    radius: float


class Integral(NamedTuple):
    """The logarithm of the tail (or moment) and of the density at q."""

    log_value: float
    log_pdf: float
    error: float
    pdf_error: float
    nodes: int
    step: float


class Weights(NamedTuple):
    """What multiplies exp(K(t) - tq) on a path: the moment, sqrt(q), and is there a density?"""

    moment: int
    root_q: float
    no_density: bool


class Level(NamedTuple):
    """Sums over every node of the first level, and over every second and fourth."""

    value: float
    pdf: float
    even: float
    even_pdf: float
    fourth: float
    fourth_pdf: float
    count: int


class Convergence(NamedTuple):
    """The last relative change of the trapezoid rule, and the one before it."""

    change: float
    previous: float
    noise: float  # a change below it may be rounding that no step reduces


@jit
def is_plain(moment):
    """Over 1/t alone; the hockey stick's second pole is in the node itself."""
    return moment == TAIL or moment == HOCKEY_STICK


@jit
def pole_order(moment):
    return 2.0 if moment == EXCESS or moment == SHORTFALL else 1.0


@jit
def _straight_path(saddle):
    width = min(min(saddle.t, saddle.right), _LARGEST_WIDTH / math.sqrt(saddle.phi2))
    return Path(width, 0.0, width)


@jit
def _choose_path(form, saddle, q):
    bulk = _LARGEST_WIDTH / math.sqrt(saddle.phi2)
    left, right = saddle.t, saddle.right
    width = min(min(left, right), bulk)
    wanted = _BEND_FACTOR * saddle.phi3 / (3 * saddle.phi2) * width
    direction = 1.0 if q > 0 else (-1.0 if q < 0 else 0.0)
    if wanted * direction >= 0:
        limit = _LARGEST_BEND_NORMAL if form.normal_sd > 0 else _LARGEST_BEND
        bend = min(limit, max(abs(wanted), _LEAST_BEND))
        ahead, behind = (left, right) if direction < 0 else (right, left)
        width = min(min(ahead * (1 + bend), behind), bulk)
        return Path(width, direction * bend, width)
    y = width
    for _ in range(_MOST_DOUBLINGS):
        if not direction * slope_off_axis(saddle, y) > 0:
            break
        y *= 2
    return Path(width, direction * _OPPOSED_BEND, 2 * y)


@jit
def _exponent(saddle, x, y):
    """K(t0 + z) - K(t0), the normal term and what is `centered` left out."""
    r, k, kappa = saddle.r, saddle.dof, saddle.kappa
    re = 0.0
    im = 0.0
    for j in range(r.size):
        u = r[j] * x
        v = r[j] * y
        big = max(abs(u), abs(v))
        if big > _HUGE_FACTOR:
            re -= 0.5 * k[j] * (math.log(big) + math.log(math.hypot(u / big, v / big)))
            re -= kappa[j]
            if saddle.centered:
                re -= kappa[j] * u
                im -= kappa[j] * v
        else:
            m = (u * u - 2 * u) + v * v
            re -= 0.25 * k[j] * math.log1p(m)
            if kappa[j] > 0 and saddle.centered:
                inverse = 1 / (1 + m)
                n = (u * u + v * v) * inverse
                re += kappa[j] * ((u * u - v * v) * inverse - u * n)
                im += kappa[j] * (v * (2 * u * inverse - n))
            elif kappa[j] > 0:
                scale = kappa[j] / (1 + m)
                re += scale * (u - (u * u + v * v))
                im += scale * v
        im -= 0.5 * k[j] * math.atan2(-v, 1 - u)
    return re, im


@jit
def _gauss_cauchy(z, squared):
    """(1/pi) int e^{-x^2} g(x^2) / (z^2 + x^2) dx by the midpoint rule of step 1/2."""
    z2 = z * z
    total = 0j
    for i in range(_MIDPOINTS):
        x2 = (0.25 + 0.5 * i) ** 2
        total += math.exp(-x2) * (x2 if squared else 1.0) / (z2 + x2)
    total /= math.pi
    if z.real < 2 * math.pi:
        pole = 2.0 * np.exp(z2) / (1.0 + np.exp(4 * math.pi * z))
        total += -z * pole if squared else pole / z
    return total


@jit
def _weigh(moment, ratio, t, root_q):
    """What multiplies exp(K(t) - tq), times t0^order; ratio is t0/t."""
    if moment == EXCESS:
        return ratio * ratio
    root_t = np.sqrt(t / ratio)
    z = root_t * root_q
    root_pi = math.sqrt(math.pi)
    if moment == SHORTFALL:
        return ratio * ratio * root_pi * _gauss_cauchy(z, True)
    erfcx = z * _gauss_cauchy(z, False) if root_q > 0 else 1.0 + 0j
    return ratio * (root_q + 0.5 * root_pi * erfcx / root_t)


@jit
def _node(u, saddle, path):
    """exp(K(t) - tq - K(t0) + t0 q) dt/du / i (over 1 + second z), its size, and t0/t."""
    y = path.width * math.sinh(u)
    root = math.hypot(path.radius, y)
    x = path.bend * y * (y / (root + path.radius))
    re, im = _exponent(saddle, x, y)
    normal = saddle.normal_variance
    log_size = re + saddle.drift * x + 0.5 * normal * (x - y) * (x + y)
    size = math.exp(min(log_size, _LARGEST_LOG))
    size *= path.width * math.cosh(u)
    angle = im + saddle.drift * y + normal * x * y
    g = size * complex(math.cos(angle), math.sin(angle)) * complex(1.0, -path.bend * y / root)
    if saddle.second > 0:
        other = 1 / complex(1 + x * saddle.second, y * saddle.second)
        g *= other
        size *= abs(other)
    return g, size, 1 / complex(1 + x / saddle.t, y / saddle.t)


@jit
def _weight(weights, ratio, t):
    if is_plain(weights.moment):
        return ratio
    return _weigh(weights.moment, ratio, t, weights.root_q)


@jit
def _error(levels):
    """What three levels of the trapezoid rule say (Convergence in contour.hpp)."""
    change, previous = levels.change, levels.previous
    if not previous < 5e-4:
        return max(change, 1e-3 * previous * previous)
    if change < 2e-14:
        return change + 1e-15
    after = 10 * change * change
    consistent = change < 1e-3 * previous and change < 10 * previous * previous + 1e-11
    return after + 1e-15 if consistent and after < 1e-14 else change


@jit
def _done(levels):
    change = levels.change
    return _error(levels) < 1e-13 or (change < levels.noise and change > 0.1 * levels.previous)


@jit
def relative_change(now, before):
    return abs(now - before) / abs(now) if now != 0 else INFINITY


@jit
def _first_level(saddle, path, weights):
    """The rule with the first step, to where a block's last nodes are negligible."""
    h = _FIRST_STEP
    value = pdf = even = even_pdf = fourth = fourth_pdf = 0.0
    largest = largest_pdf = last = last_pdf = 0.0
    count = 0
    while True:
        g, size, ratio = _node(count * h, saddle, path)
        weight = _weight(weights, ratio, saddle.point_t)
        half = 1.0 if count else 0.5
        a, b = half * (g * weight).real, half * g.real
        value += a
        pdf += b
        if count % 2 == 0:
            even += a
            even_pdf += b
        if count % 4 == 0:
            fourth += a
            fourth_pdf += b
        largest = max(largest, size * abs(weight))
        largest_pdf = max(largest_pdf, size)
        count += 1
        if count % _BLOCK == _BLOCK - 1:
            last, last_pdf = size * abs(weight), size
        if count % _BLOCK == 0:
            last, last_pdf = max(last, size * abs(weight)), max(last_pdf, size)
            over = weights.no_density or last_pdf < _NEGLIGIBLE * largest_pdf
            if (over and last < _NEGLIGIBLE * largest) or count * h >= _LARGEST_U:
                return Level(value, pdf, even, even_pdf, fourth, fourth_pdf, count)


@jit
def _add_midpoints(saddle, path, weights, count, h, value, pdf):
    """The sums with the nodes that halve the step h."""
    for i in range(count):
        g, _, ratio = _node((i + 0.5) * h, saddle, path)
        value += (g * _weight(weights, ratio, saddle.point_t)).real
        pdf += g.real
    return value, pdf


@jit
def _as_integral(saddle, moment, no_density, value, pdf, tail, density, count, h):
    """Sums over a path, with the factor at its saddlepoint."""
    order, t, pole = pole_order(moment), saddle.point_t, saddle.pole
    log_value = saddle.log_factor - math.log(saddle.t) - (order - 1) * math.log(t)
    log_value -= math.log1p(t / pole)
    log_value += math.log(value / math.pi) if value > 0 else -INFINITY
    log_pdf = saddle.log_factor + saddle.unit * LOG2
    log_pdf -= math.log(t + pole) if pole < INFINITY else 0.0
    log_pdf += math.log(pdf / math.pi) if pdf > 0 else -INFINITY
    error, pdf_error = _error(tail) + saddle.rounding, _error(density) + saddle.rounding
    if no_density:
        return Integral(log_value, INFINITY, error, 0.0, count, h)
    return Integral(log_value, log_pdf, error, pdf_error, count, h)


@jit
def _integrate_along(path, most, form, saddle, q, moment):
    """The integral on a path, its step halved until the errors are met or `most` nodes taken."""
    root_q = math.sqrt(q) if q > 0 else 0.0
    no_density = q == 0 and form.normal_sd == 0 and form.total_dof <= 2
    no_density = no_density and moment != HOCKEY_STICK
    weights = Weights(moment, root_q, no_density)
    h, noise = _FIRST_STEP, max(1e-11, 4 * saddle.rounding)
    first = _first_level(saddle, path, weights)
    value, pdf, count = first.value, first.pdf, first.count
    # The first level is three: with every node, every second, every fourth.
    tail = Convergence(
        relative_change(value, 2 * first.even),
        relative_change(2 * first.even, 4 * first.fourth),
        noise,
    )
    density = Convergence(
        relative_change(pdf, 2 * first.even_pdf),
        relative_change(2 * first.even_pdf, 4 * first.fourth_pdf),
        noise,
    )
    while count < most and not (_done(tail) and (no_density or _done(density))):
        old, old_pdf = value * h, pdf * h
        value, pdf = _add_midpoints(saddle, path, weights, count, h, value, pdf)
        h *= 0.5
        count *= 2
        tail = Convergence(relative_change(value * h, old), tail.change, noise)
        density = Convergence(relative_change(pdf * h, old_pdf), density.change, noise)
    return _as_integral(saddle, moment, no_density, value * h, pdf * h, tail, density, count, h)


@jit
def _worst_error(found, bound):
    """Infinite where a value is none, or above its bound: what is left of a cancellation."""
    worst = max(found.error, found.pdf_error)
    return worst if -INFINITY < found.log_value <= bound and worst == worst else INFINITY


@jit
def _best(form, saddle, q, moment):
    """The path that does, of the bent and the straight one; its integral; nodes in all."""
    bent = _choose_path(form, saddle, q)
    path = bent
    found = _integrate_along(bent, _FIRST_BUDGET, form, saddle, q, moment)
    nodes = found.nodes
    # Chernoff: no tail is above exp(K(t) - tq), and so no hockey stick.
    bound = saddle.log_factor + _CHERNOFF_SLACK if is_plain(moment) else INFINITY
    enough = max(_MET, 8 * saddle.rounding)
    for straight in (True, False):
        if _worst_error(found, bound) < enough:
            break
        other = _straight_path(saddle) if straight else bent
        most = _FIRST_BUDGET if straight else _MOST_NODES
        tried = _integrate_along(other, most, form, saddle, q, moment)
        nodes += tried.nodes
        if not _worst_error(found, bound) <= _worst_error(tried, bound):
            path, found = other, tried
    if found.log_value > bound:
        found = Integral(found.log_value, found.log_pdf, 1.0, 1.0, found.nodes, found.step)
    return path, found, nodes


@jit
def integrate(form, saddle, q, moment):
    """The integral on the saddle's contour; nodes of all paths."""
    _, found, nodes = _best(form, saddle, q, moment)
    return Integral(found.log_value, found.log_pdf, found.error, found.pdf_error, nodes, found.step)


@jit
def form_integral(form, q, sign, moment):
    """E[g(Q); Q > q] of sign * Q, in scaled units."""
    return integrate(form, find_saddle(form, sign, q, pole_order(moment)), q, moment)


@jit
def form_moment(form, q, sign, moment):
    """(log E[g(Q); Q beyond q], its error, nodes), q in the caller's units."""
    q = sign * math.ldexp(q, -form.exponent)
    highest = form.highest if sign > 0 else -form.lowest
    if highest == 0 and form.normal_sd == 0 and q >= 0:
        return -INFINITY, 0.0, 0
    found = form_integral(form, q, sign, moment)
    unit = 0.0 if moment == TAIL else (0.5 if moment == ROOT else 1.0)
    return found.log_value + unit * form.exponent * LOG2, found.error, found.nodes


@jit
def form_contour(form, q):
    """Nodes t of sign * Q and weights of the density at q, in scaled units, and the sign."""
    q = math.ldexp(q, -form.exponent)
    sign = 1.0 if q > form.mean else -1.0
    saddle = find_saddle(form, sign, sign * q, 1.0)
    path, found, _ = _best(form, saddle, sign * q, TAIL)
    count, h = found.nodes, found.step
    nodes = np.empty(count, np.complex128)
    weights = np.empty(count, np.complex128)
    scale = h / math.pi * math.exp(saddle.log_factor) * math.ldexp(1.0, saddle.unit)
    for i in range(count):
        g, _, ratio = _node(i * h, saddle, path)
        nodes[i] = saddle.point_t / ratio
        weights[i] = scale * g * (1.0 if i else 0.5)
    return nodes, weights, sign
