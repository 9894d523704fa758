"""Twin of ``quadratic_form_saddle.cpp`` and ``quadratic_form_contour.cpp``: one integral."""

from __future__ import annotations

import math

import numpy as np

from .jit import jit

_INFINITY = math.inf
_LOG2 = math.log(2.0)
_WIDEST = 700.0  # of the chart: exp(_WIDEST) is still a double
_FIRST_STEP = 0.09  # of the trapezoid rule in u
_BLOCK = 8
_NEGLIGIBLE = 1e-17  # a node against the largest
_WIDTH = 3.0  # of the path, in standard deviations
_EAGERNESS = 1.5  # bend against that of steepest descent at the saddle
_LEAST_BEND = 0.1
_FARTHEST = 690.0  # u where sinh u nears overflow
_MOST_NODES = 200000
_PATIENCE, _ENOUGH = 1 << 14, 1e-10
_TAIL, _EXCESS, _ROOT, _SHORTFALL, _HOCKEY_STICK = 0, 1, 2, 3, 4


@jit
def _survivor(w, t, gap, highest):
    if w > 0 and gap < 0.5:
        return ((highest - w) + w * gap) / highest
    return 1 - 2 * w * t


@jit
def _point_at(chart, highest):
    if not highest > 0:
        return math.exp(chart), 1.0
    e = math.exp(-abs(chart))
    share = (e if chart < 0 else 1.0) / (1 + e)
    gap = (1.0 if chart < 0 else e) / (1 + e)
    return share / (2 * highest), gap


@jit
def _balance(w, k, nc, sd, sign, highest, q, power, pole, t, gap):
    up = sd * sd * t
    other = 1 / (t + pole)
    down = power / t + other
    up_slope = up
    down_slope = -power / t - t * other * other
    if q > 0:
        down += q
    else:
        up -= q
    for j in range(w.size):
        v = sign * w[j]
        a = 1 / _survivor(v, t, gap, highest)
        g = abs(v) * a
        first = g * (k[j] + nc[j] * a)
        second = 2 * g * (g * t) * (k[j] + 2 * nc[j] * a)
        if v > 0:
            up += first
            up_slope += second
        else:
            down += first
            down_slope -= second
    return up, down, up_slope, down_slope


@jit
def _solve(w, k, nc, sd, mean, variance, sign, highest, q, power, pole):
    distance = q - sign * mean
    root = math.sqrt(distance * distance + 4 * power * variance)
    if distance > 0:
        t = (distance + root) / (2 * variance)
    else:
        t = 2 * power / (root - distance)
    x = math.log(2 * highest * t) if highest > 0 else math.log(t)
    below, above, reach = -_INFINITY, _INFINITY, 4.0
    for _ in range(200):
        t, gap = _point_at(x, highest)
        up, down, up_slope, down_slope = _balance(
            w, k, nc, sd, sign, highest, q, power, pole, t, gap
        )
        miss = math.log(up / down)
        if miss < 0:
            below = x
        else:
            above = x
        slope = (up_slope / up - down_slope / down) * gap
        dx = -miss / slope if slope > 0 else _INFINITY
        if not abs(dx) <= reach:
            dx = reach if miss < 0 else -reach
            reach *= 2
        if not (below < x + dx < above):
            dx = 0.5 * (below + above) - x
        x = min(max(x + dx, -_WIDEST), _WIDEST)
        if abs(dx) < 0.02:
            break
    return _point_at(x, highest)


@jit
def _log_defect(x):
    """log(1 - x) + x, to full relative accuracy."""
    if abs(x) > 0.125:
        return math.log1p(-x) + x
    s = x / (2 - x)
    s2 = s * s
    series = 0.0
    for n in range(15, 2, -2):
        series = (series + 1.0 / n) * s2
    return -2 * s * (s / (1 + s) + series)


@jit
def _add(total, v):
    s = total[0] + v
    b = s - total[0]
    total[1] += (total[0] - (s - b)) + (v - b)
    total[0] = s


@jit
def _halves(a):
    high = a * 134217729.0  # 2^27 + 1, Veltkamp
    high -= high - a
    return high, a - high


@jit
def _add_product(total, a, b):
    """Adds a b with the product's own rounding (Dekker)."""
    p = a * b
    _add(total, p)
    if 1e-200 < abs(p) < 1e200 and abs(a) < 1e200 and abs(b) < 1e200:
        ah, al = _halves(a)
        bh, bl = _halves(b)
        _add(total, ((ah * bh - p) + ah * bl + al * bh) + al * bl)


@jit
def _describe(w, k, nc, sd, sign, highest, q, power, pole, t, gap):
    """The terms seen from a point, in units of 2^unit (see form_saddle.hpp)."""
    unit = math.frexp(t)[1]
    scale = math.ldexp(1.0, unit)
    t0 = t / scale
    normal = sd * sd * scale * scale
    second = scale / (t + pole)
    phi2 = normal + power / (t0 * t0) + second * second
    phi3 = -2 * power / (t0 * t0 * t0) - 2 * second * second * second
    right = 0.5 * gap / highest / scale if highest > 0 else _INFINITY
    r = np.empty(w.size)
    kappa = np.empty(w.size)
    log_mgf = np.zeros(2)
    centre = np.zeros(2)
    _add(centre, -q)
    _add(log_mgf, 0.5 * sd * sd * t * t)
    for j in range(w.size):
        v = sign * w[j]
        x = 2 * v * t
        a = _survivor(v, t, gap, highest)
        r[j] = 2 * (v * scale) / a
        kappa[j] = 0.5 * nc[j] / a
        phi2 += r[j] * r[j] * (0.5 * k[j] + 2 * kappa[j])
        phi3 += r[j] * r[j] * r[j] * (k[j] + 6 * kappa[j])
        if abs(x) < 0.5:
            _add(log_mgf, -0.5 * k[j] * _log_defect(x))
            _add(log_mgf, kappa[j] * x * x)
            _add_product(centre, v, k[j])
            _add_product(centre, v, nc[j])
        else:
            _add(log_mgf, -0.5 * k[j] * (math.log1p(-x) if a > 0.5 else math.log(a)))
            _add(log_mgf, kappa[j] * x)
    _add_product(log_mgf, t, centre[0] + centre[1])
    drift = (sd * sd * t - q) * scale
    log_factor = log_mgf[0] + log_mgf[1]
    kind = pole, second, False, 0.0  # the second pole, one over it from t; centered; rounding
    return t, unit, t0, normal, phi2, phi3, right, drift, log_factor, r, kappa, kind


@jit
def _slope_off_axis(r, k, kappa, drift, centered, y):
    slope = drift
    for j in range(r.size):
        v = r[j] * y
        inverse = 1 / (1 + v * v)
        slope += r[j] * inverse * (0.5 * k[j] + kappa[j] * (1 - v * v) * inverse)
        if centered:
            slope -= r[j] * kappa[j]
    return slope


@jit
def _saddle(w, k, nc, sd, mean, variance, sign, highest, q, power, pole=_INFINITY):
    t, gap = _solve(w, k, nc, sd, mean, variance, sign, highest, q, power, pole)
    return _describe(w, k, nc, sd, sign, highest, q, power, pole, t, gap)


@jit
def _saddle_of_tail(w, k, nc, sd, variance, sign, highest, log_tail):
    """The q where the saddlepoint approximation of the tail has this logarithm."""
    below, above, reach, q = -_INFINITY, _INFINITY, 2.0, 0.0
    x = 0.5 * math.log(max(-2 * log_tail, 1.0) / variance)
    if highest > 0:
        x += math.log(2 * highest)
    for _ in range(100):
        t, gap = _point_at(x, highest)
        up, down, _, _ = _balance(w, k, nc, sd, sign, highest, 0.0, 1.0, _INFINITY, t, gap)
        q = up - down
        s = _describe(w, k, nc, sd, sign, highest, q, 1.0, _INFINITY, t, gap)
        t0, phi2 = s[2], s[4]
        miss = s[8] - math.log(t0) - 0.5 * math.log(2 * math.pi * phi2) - log_tail
        if abs(miss) < 0.02:
            break
        if miss > 0:
            below = x
        else:
            above = x
        dx = miss / (t0 * t0 * phi2 * gap)
        if not abs(dx) <= reach:
            dx = reach if miss > 0 else -reach
            reach *= 2
        if not (below < x + dx < above):
            dx = 0.5 * (below + above) - x
        x = min(max(x + dx, -_WIDEST), _WIDEST)
        if abs(dx) < 1e-6:
            break
    return q


@jit
def _path(k, r, kappa, t0, right, phi2, phi3, drift, centered, sd, q):
    bulk = _WIDTH / math.sqrt(phi2)
    width = min(min(t0, right), bulk)
    wanted = _EAGERNESS * phi3 / (3 * phi2) * width
    direction = 1.0 if q > 0 else (-1.0 if q < 0 else 0.0)
    if wanted * direction >= 0:
        limit = 0.7 if sd > 0 else 1.0
        bend = min(limit, max(abs(wanted), _LEAST_BEND))
        ahead, behind = (t0, right) if direction < 0 else (right, t0)
        width = min(min(ahead * (1 + bend), behind), bulk)
        return width, direction * bend, width
    y = width
    for _ in range(400):
        if not direction * _slope_off_axis(r, k, kappa, drift, centered, y) > 0:
            break
        y *= 2
    return width, direction * 0.5, 2 * y


@jit
def _exponent(k, r, kappa, centered, x, y):
    """K(t0 + z) - K(t0), the normal term left out; `centered`: and what kappa makes linear."""
    re = 0.0
    im = 0.0
    for j in range(r.size):
        u = r[j] * x
        v = r[j] * y
        big = max(abs(u), abs(v))
        if big > 1e150:
            re -= 0.5 * k[j] * (math.log(big) + math.log(math.hypot(u / big, v / big)))
            re -= kappa[j]
            if centered:
                re -= kappa[j] * u
                im -= kappa[j] * v
        else:
            m = (u * u - 2 * u) + v * v
            re -= 0.25 * k[j] * math.log1p(m)
            if kappa[j] > 0 and centered:
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
    for i in range(13):
        x2 = (0.25 + 0.5 * i) ** 2
        total += math.exp(-x2) * (x2 if squared else 1.0) / (z2 + x2)
    total /= math.pi
    if z.real < 2 * math.pi:
        pole = 2.0 * np.exp(z2) / (1.0 + np.exp(4 * math.pi * z))
        total += -z * pole if squared else pole / z
    return total


@jit
def _weigh(moment, ratio, t, root_q):
    if moment == _EXCESS:
        return ratio * ratio
    root_t = np.sqrt(t / ratio)
    z = root_t * root_q
    root_pi = math.sqrt(math.pi)
    if moment == _SHORTFALL:
        return ratio * ratio * root_pi * _gauss_cauchy(z, True)
    erfcx = z * _gauss_cauchy(z, False) if root_q > 0 else 1.0 + 0j
    return ratio * (root_q + 0.5 * root_pi * erfcx / root_t)


@jit
def _node(u, k, r, kappa, path, frame):
    """exp(K(t) - tq - K(t0) + t0 q) dt/du / i (over 1 + second z), its size, and t0/t."""
    width, bend, radius = path
    t0, normal, drift, second, centered = frame
    y = width * math.sinh(u)
    root = math.hypot(radius, y)
    x = bend * y * (y / (root + radius))
    re, im = _exponent(k, r, kappa, centered, x, y)
    size = math.exp(min(re + drift * x + 0.5 * normal * (x - y) * (x + y), 700.0))
    size *= width * math.cosh(u)
    angle = im + drift * y + normal * x * y
    g = size * complex(math.cos(angle), math.sin(angle)) * complex(1.0, -bend * y / root)
    if second > 0:
        other = 1 / complex(1 + x * second, y * second)
        g *= other
        size *= abs(other)
    return g, size, 1 / complex(1 + x / t0, y / t0)


@jit
def _error(change, previous):
    """What three levels of the trapezoid rule say (see quadratic_form_contour.cpp)."""
    if not previous < 5e-4:
        return max(change, 1e-3 * previous * previous)
    if change < 2e-14:
        return change + 1e-15
    after = 10 * change * change
    consistent = change < 1e-3 * previous and change < 10 * previous * previous + 1e-11
    return after + 1e-15 if consistent and after < 1e-14 else change


@jit
def _done(change, previous, noise):
    return _error(change, previous) < 1e-13 or (change < noise and change > 0.1 * previous)


@jit
def _change(now, before):
    return abs(now - before) / abs(now) if now != 0 else _INFINITY


@jit
def _along(path, most, k, saddle, sd, total_dof, q, moment):
    """(log value, log density, error, density error, nodes, step) on a path."""
    t, unit, t0, normal, _phi2, _phi3, _right, drift, log_factor, r, kappa, kind = saddle
    pole, second, centered, rounding = kind
    frame = t0, normal, drift, second, centered
    order = 2.0 if moment == _EXCESS or moment == _SHORTFALL else 1.0
    root_q = math.sqrt(q) if q > 0 else 0.0
    plain = moment == _TAIL or moment == _HOCKEY_STICK
    no_density = q == 0 and sd == 0 and total_dof <= 2 and moment != _HOCKEY_STICK
    noise = max(1e-11, 4 * rounding)
    h = _FIRST_STEP
    value = pdf = even = even_pdf = fourth = fourth_pdf = 0.0
    largest = largest_pdf = last = last_pdf = 0.0
    count = 0
    while True:
        g, size, ratio = _node(count * h, k, r, kappa, path, frame)
        weight = ratio if plain else _weigh(moment, ratio, t, root_q)
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
            over = no_density or last_pdf < _NEGLIGIBLE * largest_pdf
            if (over and last < _NEGLIGIBLE * largest) or count * h >= _FARTHEST:
                break
    # The first level is three: with every node, every second, every fourth.
    change, previous = _change(value, 2 * even), _change(2 * even, 4 * fourth)
    density_change = _change(pdf, 2 * even_pdf)
    density_previous = _change(2 * even_pdf, 4 * fourth_pdf)
    while count < most:
        if _done(change, previous, noise) and (
            no_density or _done(density_change, density_previous, noise)
        ):
            break
        old, old_pdf = value * h, pdf * h
        for i in range(count):
            g, size, ratio = _node((i + 0.5) * h, k, r, kappa, path, frame)
            weight = ratio if plain else _weigh(moment, ratio, t, root_q)
            value += (g * weight).real
            pdf += g.real
        h *= 0.5
        count *= 2
        previous, density_previous = change, density_change
        change, density_change = _change(value * h, old), _change(pdf * h, old_pdf)
    error, pdf_error = _error(change, previous), _error(density_change, density_previous)
    log_value = log_factor - math.log(t0) - (order - 1) * math.log(t) - math.log1p(t / pole)
    log_value += math.log(value * h / math.pi) if value > 0 else -_INFINITY
    log_pdf = log_factor + unit * _LOG2 - (math.log(t + pole) if pole < _INFINITY else 0.0)
    log_pdf += math.log(pdf * h / math.pi) if pdf > 0 else -_INFINITY
    if no_density:
        return log_value, _INFINITY, error, 0.0, count, h
    return log_value, log_pdf, error + rounding, pdf_error + rounding, count, h


@jit
def _worst(found, bound):
    """Infinite where a value is none, or above its bound: what is left of a cancellation."""
    worst = max(found[2], found[3])
    return worst if -_INFINITY < found[0] <= bound and worst == worst else _INFINITY


@jit
def _best(k, saddle, sd, total_dof, q, moment):
    """The path that does, of the bent and the straight one; what `_along` says; nodes in all."""
    _t, _unit, t0, _normal, phi2, phi3, right, drift, log_factor, r, kappa, kind = saddle
    _pole, _second, centered, rounding = kind
    enough = max(_ENOUGH, 8 * rounding)
    plain = moment == _TAIL or moment == _HOCKEY_STICK
    path = _path(k, r, kappa, t0, right, phi2, phi3, drift, centered, sd, q)
    width = min(min(t0, right), _WIDTH / math.sqrt(phi2))
    found = _along(path, _PATIENCE, k, saddle, sd, total_dof, q, moment)
    nodes = found[4]
    bound = log_factor + 1e-6 if plain else _INFINITY  # Chernoff
    for straight in (True, False):
        if _worst(found, bound) < enough:
            break
        other = (
            (width, 0.0, width)
            if straight
            else _path(k, r, kappa, t0, right, phi2, phi3, drift, centered, sd, q)
        )
        most = _PATIENCE if straight else _MOST_NODES
        tried = _along(other, most, k, saddle, sd, total_dof, q, moment)
        nodes += tried[4]
        if not _worst(found, bound) <= _worst(tried, bound):
            path, found = other, tried
    if found[0] > bound:
        found = (found[0], found[1], 1.0, 1.0, found[4], found[5])
    return path, found, nodes


@jit
def _integrate(k, saddle, sd, total_dof, q, moment):
    """(log value, log density, error, density error, nodes, step) on the saddle's contour."""
    _, found, nodes = _best(k, saddle, sd, total_dof, q, moment)
    return found[0], found[1], found[2], found[3], nodes, found[5]


@jit
def _contour(k, saddle, sd, total_dof, q):
    """Nodes t and weights of the density, in units of the scaled distribution."""
    t, unit, t0, normal, _phi2, _phi3, _right, drift, log_factor, r, kappa, kind = saddle
    _pole, second, centered, _rounding = kind
    frame = t0, normal, drift, second, centered
    path, found, _ = _best(k, saddle, sd, total_dof, q, _TAIL)
    count, h = found[4], found[5]
    nodes = np.empty(count, np.complex128)
    weights = np.empty(count, np.complex128)
    scale = h / math.pi * math.exp(log_factor) * math.ldexp(1.0, unit)
    for i in range(count):
        g, _, ratio = _node(i * h, k, r, kappa, path, frame)
        nodes[i] = t / ratio
        weights[i] = scale * g * (1.0 if i else 0.5)
    return nodes, weights
