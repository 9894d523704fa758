"""Reference values of delta(epsilon) of two Gaussians, in ball arithmetic.

    python gaussian_pair.py 500 gaussian_pair.npz

draws so many pairs (seeded) over the classes that are hard, and one epsilon for each, and
computes delta and its derivative with python-flint: the integral of exp(K(t) - t eps) over
t (1 + t) and over 1 + t on two paths of different apex, width and bend, which must agree to
20 digits, or step and precision are changed. The balls bound all rounding. A single term without
shift, and equal covariances, are checked against their closed forms. Nothing is taken from the
code under test: epsilon comes from a point on the real axis that is drawn.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np
from flint import acb, arb, ctx

DIGITS = 20
SEED = 20261121
CLASSES = (
    "both signs", "leverages far apart", "many rows", "tiny leverage", "near the edge",
    "shift at tiny leverage", "deep", "wide", "normal beside", "many terms",
)  # fmt: skip


class Case(NamedTuple):
    excess: np.ndarray  # kappa - 1
    shift2: np.ndarray
    dof: np.ndarray


def short(values, digits=7):
    """Rounded to a few digits, so that the stored table packs well."""
    return np.array([float(f"{v:.{digits}g}") for v in np.atleast_1d(values)])


def replaced(out: float, into: float, cross: float) -> np.ndarray:
    """kappa - 1 of the two directions in which one row replaces another (leverages)."""
    root = math.sqrt(max((out + into) ** 2 - 4 * cross * cross, 0))
    sigma = 0.5 * (into - out + np.array([root, -root]))
    return -sigma / (1 + sigma)


def draw_case(rng: np.random.Generator, kind: str) -> Case:
    d = int(rng.choice([1, 2, 3, 5], p=[0.2, 0.4, 0.25, 0.15]))
    size = 10.0 ** rng.uniform(-6, 1, d)
    sign = rng.choice([-1.0, 1.0], d)
    dof = np.ones(d)
    shift2 = np.where(rng.random(d) < 0.5, 10.0 ** rng.uniform(-4, 2, d), 0)
    if kind in ("both signs", "near the edge"):
        d = max(d, 2) if kind == "both signs" else d
        size, shift2 = np.resize(size, d), np.resize(shift2, d)
        sign = np.resize([1.0, -1.0], d) if kind == "both signs" else np.full(d, sign[0])
        size = size * (1 + 0.1 * rng.random(d))
        dof = rng.choice([1.0, 1.0, 2.0, 20.0], d)
    if kind in ("leverages far apart", "many rows", "tiny leverage"):
        low = -12 if kind == "tiny leverage" else -6
        high = -6 if kind == "tiny leverage" else 1
        rows = {"leverages far apart": [1, 2, 5, 20], "many rows": [10_000]}
        m = float(rng.choice(rows.get(kind, [1, 10, 1000, 1_000_000])))
        out = min(10.0 ** rng.uniform(low, high), rng.uniform(0.5, 0.99))
        into = 10.0 ** rng.uniform(low, high)
        cross = rng.choice([0, rng.uniform(-1, 1)]) * math.sqrt(out * into)
        e = replaced(out, into, cross)
        if rng.random() < 0.4:
            e = np.array([-into / (1 + into)]) if rng.random() < 0.5 else np.array([into])
        return Case(short(e, 10), np.zeros(e.size), np.full(e.size, m))
    if kind == "shift at tiny leverage":
        size = 10.0 ** rng.uniform(-14, -5, d)
        shift2 = 10.0 ** rng.uniform(-2, 2, d)
    if kind == "wide":
        size = 10.0 ** rng.uniform(-8, 8, d)
    if kind == "many terms":
        d = 30
        size = 10.0 ** rng.uniform(-3, 0, d)
        sign = rng.choice([-1.0, 1.0], d)
        shift2 = np.where(rng.random(d) < 0.3, 10.0 ** rng.uniform(-4, 0, d), 0)
        dof = np.ones(d)
    if kind == "deep":
        dof = rng.choice([1.0, 3.0, 100.0], d)
    e = np.where(sign > 0, size, -size / (1 + size))
    if kind == "normal beside":
        e = np.append(e, 0.0)
        shift2 = np.append(shift2, 10.0 ** rng.uniform(-4, 1.5))
        dof = np.append(dof, 1.0)
    return Case(short(e, 10), short(shift2), dof)


def terms(case: Case):
    for e, c2, m in zip(case.excess, case.shift2, case.dof, strict=True):
        yield arb(float(e)), arb(float(c2)), arb(float(m))


def derivatives(case: Case, t: arb) -> tuple[arb, arb, arb, arb]:
    """K and its first three derivatives at a real t."""
    out = [arb(0)] * 4
    for e, c2, m in terms(case):
        a = 1 - t * e
        log_kappa, b = (1 + e).log(), (1 + e) * c2 / 2
        out[0] += -m / 2 * (a.log() + t * log_kappa) + b * t * (1 + t) / a
        out[1] += m / 2 * (e / a - log_kappa) + b * (1 + 2 * t - t * t * e) / a**2
        out[2] += m / 2 * (e / a) ** 2 + 2 * b * (1 + e) / a**3
        out[3] += m * (e / a) ** 3 + 6 * b * (1 + e) * e / a**4
    return tuple(out)


def draw_apex(rng: np.random.Generator, case: Case, kind: str) -> tuple[arb, arb]:
    """A point on the axis at which log delta is about what is wanted, and the epsilon there."""
    top = float(case.excess.max())
    depth = 10 ** rng.uniform(1.5, 2.83) if kind == "deep" else 10 ** rng.uniform(-0.3, 2.2)
    best = None
    for _ in range(200):
        x = rng.uniform(-12, 30)
        if top > 0:
            share = 1 / (1 + arb(-x).exp())
            t = share / arb(top)
        else:
            t = arb(x).exp()
        t = t.mid()
        k, k1, k2, _ = derivatives(case, t)
        eps = float((k1 - 1 / t - 1 / (1 + t)).mid())
        if not (math.isfinite(eps) and 1e-12 < eps < 1e12):
            continue
        curvature = k2 + 1 / t**2 + 1 / (1 + t) ** 2
        guess = k - t * arb(eps) - (t * (1 + t) * (2 * arb.pi() * curvature).sqrt()).log()
        miss = abs(math.log(max(-float(guess.mid()), 1e-3)) - math.log(depth))
        if float(guess.mid()) < 0 and (best is None or miss < best[0]):
            best = miss, t, eps
    if best is None:
        raise ArithmeticError("no epsilon above 0")
    return best[1], arb(float(f"{best[2]:.12g}"))


class Path(NamedTuple):
    t0: arb
    width: arb
    bend: float
    radius: arb


def slope_off_axis(case: Case, t: acb, eps: arb) -> float:
    total = -acb(eps)
    for e, c2, m in terms(case):
        a = 1 - t * e
        total += m / 2 * (e / a - (1 + e).log())
        total += (1 + e) * c2 / 2 * (1 + 2 * t - t * t * e) / a**2
    return float(total.real.mid())


def choose_paths(case: Case, eps: arb, t0: arb) -> list[Path]:
    _, _, k2, k3 = derivatives(case, t0)
    curvature = k2 + 1 / t0**2 + 1 / (1 + t0) ** 2
    third = float((k3 - 2 / t0**3 - 2 / (1 + t0) ** 3).mid())
    top = float(case.excess.max())
    right = 1 / arb(top) - t0 if top > 0 else arb("inf")
    bulk = arb(2.5) / curvature.sqrt()
    width = t0
    for other in (right, bulk):
        if other < width:
            width = other
    normal = any(e == 0 and c2 > 0 for e, c2, _ in terms(case))
    end = eps
    for e, c2, m in terms(case):
        if e != 0:
            end += m / 2 * (1 + e).log() + (1 + e) * c2 / (2 * e)
    toward = 1.0 if end > 0 else -1.0
    bends = (0.25, 0.125) if normal else (0.5, 0.3)
    paths = []
    for factor, bend in zip((0.8, 0.6), bends, strict=True):
        w = (width * factor).mid()
        radius = w
        if third * toward < 0:
            y = w
            for _ in range(400):
                if toward * slope_off_axis(case, acb(t0, y), eps) <= 0:
                    break
                y = y * 2
            radius = 2 * y
        apex = t0 if factor == 0.8 else (t0 - 0.1 * w).mid()
        paths.append(Path(apex, w, toward * bend, radius))
    return paths


def path_sums(case: Case, eps: arb, path: Path, h: float) -> tuple[arb, arb, arb]:
    """Trapezoid sums of exp(K - t eps)/(t(1+t)) and of exp(K - t eps)/(1+t), over exp(first)."""
    t0, width, bend, radius = path
    parts = [((1 + e).log() * m / 2, e, m / 2, (1 + e) * c2 / 2) for e, c2, m in terms(case)]
    sums = [arb(0), arb(0)]
    largest, quiet, first = 0.0, 0, None
    cutoff = 10.0 ** -(DIGITS + 4)
    for i in range(100_000):
        u = arb(i) * h
        y, rate = width * u.sinh(), width * u.cosh()
        root = (radius**2 + y**2).sqrt()
        t = acb(t0 + bend * y * (y / (root + radius)), y)
        exponent = -t * eps
        for log_kappa, e, half, b in parts:
            a = 1 - t * e
            exponent += -half * a.log() - t * log_kappa
            if b != 0:
                exponent += b * t * (1 + t) / a
        if first is None:
            first = exponent.real.mid()
        g = (exponent - first).exp() * acb(rate, -bend * y / root * rate) / (1 + t)
        half = arb(0.5) if i == 0 else arb(1)
        over = g / t
        sums[0] += half * over.real
        sums[1] += half * g.real
        size = max(float(abs(over).mid() * abs(t0).mid()), float(abs(g).mid()))
        largest = max(largest, size)
        quiet = quiet + 1 if size < cutoff * largest else 0
        if quiet >= 3:
            return sums[0] * h / arb.pi(), sums[1] * h / arb.pi(), first
    raise ArithmeticError("the integrand does not decay")


def digits_of_agreement(a: arb, b: arb) -> float:
    if a.contains(0) or b.contains(0):
        return -1.0
    gap = (abs(a - b) + a.rad() + b.rad()) / abs(a)
    gap = float(gap.upper())
    return -math.log10(gap) if gap > 0 else 99.0


def integrate(case: Case, eps: arb, t0: arb) -> tuple[arb, arb]:
    """delta and -d delta/d eps."""
    h, prec = 1 / 10, 128
    for _ in range(16):
        ctx.prec = prec
        found = []
        for path in choose_paths(case, eps, t0):
            value, slope, first = path_sums(case, eps, path, h)
            found.append((value * first.exp(), slope * first.exp()))
        (value, slope), (value2, slope2) = found
        if (
            value > 0
            and min(digits_of_agreement(value, value2), digits_of_agreement(slope, slope2)) > DIGITS
        ):
            return value, slope
        lost = any(
            v.contains(0) or float((v.rad() / abs(v)).mid()) > 1e-23 for f in found for v in f
        )
        if lost:
            prec *= 2
        else:
            h /= 2
    raise ArithmeticError("no agreement")


def closed_form(case: Case, eps: arb) -> arb | None:
    """Of one term, where a precision gives it DIGITS digits; None where there is none."""
    for prec in (400, 2000):
        ctx.prec = prec
        value = one_term(case, eps)
        if value is None or digits_of_agreement(value, value) > DIGITS:
            return value
    return None


def one_term(case: Case, eps: arb) -> arb | None:
    """A difference of chi-square or of normal tails."""
    if case.excess.size != 1:
        return None
    ((e, c2, m),) = terms(case)
    if m > 3000:  # its incomplete gamma function takes minutes
        return None

    def tail(x):  # of the standard normal
        return (x / arb(2).sqrt()).erfc() / 2

    if e == 0:
        c = c2.sqrt()
        return tail(eps / c - c / 2) - eps.exp() * tail(eps / c + c / 2)
    if c2 != 0:
        return None
    # L > eps: under P (2 eps + m log kappa) / e < chi2, under Q the same over kappa for kappa chi2
    x = (2 * eps + m * (1 + e).log()) / e
    if not x > 0:
        return None

    def upper(v):
        return acb(v / 2).gamma_upper(acb(m / 2), regularized=1).real

    def lower(v):
        return acb(v / 2).gamma_lower(acb(m / 2), regularized=1).real

    side = upper if e > 0 else lower
    return side(x) - eps.exp() * side(x * (1 + e))


def reference(index: int) -> tuple:
    kind = CLASSES[index % len(CLASSES)]
    rng = np.random.default_rng([SEED, index])
    ctx.prec = 128
    for _ in range(50):
        case = draw_case(rng, kind)
        try:
            t0, eps = draw_apex(rng, case, kind)
            value, slope = integrate(case, eps, t0)
        except ArithmeticError as error:
            print(f"case {index} ({kind}) drawn again: {error}", file=sys.stderr)
            continue
        known = closed_form(case, eps)
        if known is not None and digits_of_agreement(value, known) < DIGITS - 1:
            raise SystemExit(f"case {index} ({kind}): {value} is not the closed form {known}")
        if 1e-300 < float(value.mid()) and float(slope.mid()) > 1e-305:
            return index, case, float(eps), float(value.mid()), float(slope.mid())
    raise SystemExit(f"case {index} ({kind}): no draw converged")


def main(count: int, out: str, first: int = 0) -> None:
    rows = [reference(i) for i in range(first, first + count)]
    np.savez_compressed(
        out,
        index=np.array([r[0] for r in rows], dtype=np.int32),
        size=np.array([r[1].excess.size for r in rows], dtype=np.int32),
        excess=np.concatenate([r[1].excess for r in rows]),
        shift2=np.concatenate([r[1].shift2 for r in rows]),
        dof=np.concatenate([r[1].dof for r in rows]),
        epsilon=np.array([r[2] for r in rows]),
        delta=np.array([r[3] for r in rows]),
        slope=np.array([r[4] for r in rows]),
    )
    print(f"{len(rows)} cases")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
