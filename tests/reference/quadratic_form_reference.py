"""Reference values of random generalized chi-square distributions, in ball arithmetic.

    python quadratic_form_reference.py COUNT quadratic_form_reference.npz

draws COUNT distributions (seeded) over every class that is known to be hard, and one q for
each, and computes the smaller tail and the density there with python-flint: a Bromwich
integral of 330 bits or more on two paths of different apex, width and bend. The balls bound
all rounding; the paths must agree to 25 digits, or the step is halved. Only where to put q
is taken from the code under test; q is then rounded to nine digits.

    python quadratic_form_reference.py low_dof quadratic_form_low_dof.npz

does the same for a fixed list of distributions of low degrees of freedom, at q from 1e-250
to the far tails.
"""

from __future__ import annotations

import itertools
import math
import sys
from typing import NamedTuple

import numpy as np
from flint import acb, arb, ctx

DIGITS = 25
DOFS = (0.05, 0.5, 1.0, 2.0, 3.7, 20.0, 500.0)
CLASSES = (
    "power law", "log-uniform", "uniform", "near equal", "one dominates", "two scales",
    "noncentral", "huge noncentrality", "extreme dof", "normal", "wide", "few",
)  # fmt: skip


class Case(NamedTuple):
    weights: np.ndarray
    dof: np.ndarray
    noncentrality: np.ndarray
    normal_sd: float


def short(values, digits=6):
    """Rounded to a few digits, so that the stored table packs well."""
    return np.array([float(f"{v:.{digits}g}") for v in np.atleast_1d(values)])


def draw_case(rng: np.random.Generator, kind: str) -> Case:
    d = int(rng.choice([1, 2, 3, 5, 8, 15, 30], p=[0.1, 0.2, 0.2, 0.2, 0.15, 0.1, 0.05]))
    nc = np.zeros(d)
    sd = 0.0
    if kind == "power law":
        w = np.arange(1, d + 1.0) ** -rng.uniform(0, 6)
    elif kind == "uniform":
        w = rng.uniform(0.05, 1, d)
    elif kind == "near equal":
        w = 1 + 10.0 ** -rng.uniform(1, 12) * rng.standard_normal(d)
    elif kind == "one dominates":
        w = np.append(1.0, 10.0 ** -rng.uniform(1, 8) * rng.uniform(0.5, 1, d - 1))
    elif kind == "two scales":
        w = np.where(rng.random(d) < 0.5, 1.0, 10.0 ** -rng.uniform(2, 6))
    elif kind == "wide":
        w = 10.0 ** rng.uniform(-30, 0, d)
    else:
        w = 10.0 ** rng.uniform(-rng.uniform(0, 8), 0, d)
    k = rng.choice(DOFS, d) if rng.random() < 0.5 else np.ones(d)
    if kind == "extreme dof":
        k = 10.0 ** rng.uniform(-3, 6, d)
    if kind == "few":
        k = rng.choice([0.01, 0.05, 0.1], d)
    if kind == "noncentral" or rng.random() < 0.15:
        nc = np.where(rng.random(d) < 0.6, 10.0 ** rng.uniform(-2, 5, d), 0)
    if kind == "huge noncentrality":
        nc = 10.0 ** rng.uniform(2, 8, d)
    if rng.random() < 0.45:
        w = w * rng.choice([-1.0, 1.0], d)
    if kind == "normal" or rng.random() < 0.1:
        sd = float(10.0 ** rng.uniform(-5, 1) * np.abs(w).max())
    digits = 14 if kind == "near equal" else 6
    return Case(short(w, digits), short(k, 4), short(nc, 5), float(short(sd, 5)[0]))


def slope(case: Case, t: float, gap: float, sign: float, top: float) -> float:
    """K'(t) of sign * Q in doubles: only to place the apex."""
    w = sign * case.weights
    a = 1 - 2 * w * t
    near = w > 0
    a[near] = (top - w[near]) / top + w[near] / top * gap if top > 0 else a[near]
    return float(np.sum(w / a * (case.dof + case.noncentrality / a))) + case.normal_sd**2 * t


def apex(case: Case, q: float, sign: float) -> tuple[arb, float]:
    """t0 with K'(t0) - q - 1/t0 near 0, by bisection; and the distance to its right limit."""
    top = float(max((sign * case.weights).max(), 0))
    low, high = -700.0, 700.0
    for _ in range(60):
        x = 0.5 * (low + high)
        gap = 1 / (1 + math.exp(min(x, 700))) if top > 0 else 1.0
        t = (1 - gap if x > -1 else math.exp(x)) / (2 * top) if top > 0 else math.exp(x)
        if t > 0 and slope(case, t, gap, sign, top) - sign * q - 1 / t > 0:
            high = x
        else:
            low = x
    if top > 0:
        e = arb(x).exp()
        return e / (1 + e) / (2 * arb(top)), float(1 / (1 + e)) / (2 * top)
    return arb(x).exp(), math.inf


def path_sums(case: Case, q: float, sign: float, t0: arb, A: arb, c: float, h: float):
    """Trapezoid sums of exp(K(t) - tq)/t and exp(K(t) - tq) on t0 + A(c(cosh u - 1) + i sinh u)."""
    groups: dict[float, list] = {}
    for w, k, nc in zip(case.weights, case.dof, case.noncentrality, strict=True):
        groups.setdefault(float(k), []).append((acb(2 * sign * w), nc))
    half_s2, qq = arb(case.normal_sd) ** 2 / 2, sign * arb(q)
    tail = density = arb(0)
    largest = 0.0
    small_before = 0
    first = None
    cutoff = 2.0 ** (-0.55 * ctx.prec)
    for i in range(300_000):
        u = arb(i) * h
        cosh, sinh = u.cosh(), u.sinh()
        t = acb(t0 + A * c * (cosh - 1), A * sinh)
        exponent = half_s2 * t * t - t * qq
        for k, members in groups.items():
            logs = acb(0)
            for w2, nc in members:
                a = 1 - w2 * t
                logs += a.log()
                if nc:
                    exponent += nc * (1 / a - 1) / 2
            exponent -= logs * k / 2
        if first is None:
            first = exponent.real
        g = (exponent - first).exp() * acb(cosh, -c * sinh)
        over_t = g / t
        half = arb(0.5) if i == 0 else arb(1)
        tail += half * over_t.real
        density += half * g.real
        size = max(float(abs(over_t).mid()) * float(t0.mid()), float(abs(g).mid()))
        largest = max(largest, size)
        small_before = small_before + 1 if size < cutoff * largest else 0
        if small_before >= 3:
            break
    else:
        raise ArithmeticError("the integrand does not decay")
    scale = A * h / arb.pi()
    return tail * scale, density * scale, first


def digits_of_agreement(a: arb, b: arb) -> float:
    gap = abs(a - b) + a.rad() + b.rad()
    if a.contains(0) or b.contains(0):
        return -1.0
    return float(-(gap / abs(a)).upper().log() / arb(10).log())


def integrate(case: Case, q: float, sign: float) -> tuple[arb, arb]:
    """Tail of sign * Q beyond sign * q and the density, agreed to DIGITS digits."""
    ctx.prec = 330
    t0, right = apex(case, q, sign)
    t0 = t0.mid()
    curvature = (
        sum(
            (2 * w / (1 - 2 * sign * w * t0)) ** 2 * (k / 2 + nc / abs(1 - 2 * sign * w * t0))
            for w, k, nc in zip(map(arb, case.weights), case.dof, case.noncentrality, strict=True)
        )
        + arb(case.normal_sd) ** 2
        + 1 / t0**2
    )
    reach = min(t0.mid(), arb(right).mid(), (arb(2.5) / curvature.sqrt()).mid())
    toward = 0.0 if q == 0 else math.copysign(1.0, sign * q)
    bends = (0.25, 0.125) if case.normal_sd > 0 else (0.5, 0.3)
    h, prec = 1 / 8, 330
    for _ in range(6):
        ctx.prec = prec
        results = []
        for factor, bend in zip((0.8, 0.6), bends, strict=True):
            start = t0 if factor == 0.8 else (t0 * arb(0.97)).mid()
            tail, density, first = path_sums(
                case, q, sign, start, (reach * factor).mid(), toward * bend, h
            )
            results.append((tail * first.exp(), density * first.exp()))
        (tail, density), (tail2, density2) = results
        if min(digits_of_agreement(tail, tail2), digits_of_agreement(density, density2)) > DIGITS:
            return tail, density
        rounding = (
            max(float((abs(v.rad()) / (abs(v) + arb(1e-300))).mid()) for v in (tail, density))
            if not (tail.contains(0) or density.contains(0))
            else 1.0
        )
        if rounding > 1e-28:
            prec *= 2
        else:
            h /= 2
    raise ArithmeticError("no agreement")


def smaller_tail(case: Case, q: float, upper: bool) -> tuple[bool, arb, arb]:
    tail, density = integrate(case, q, 1.0 if upper else -1.0)
    if tail > 0.5:
        upper = not upper
        tail, density = integrate(case, q, 1.0 if upper else -1.0)
    return upper, tail, density


def draw_q(rng: np.random.Generator, case: Case) -> tuple[float, bool]:
    """A q whose smaller tail is log-uniform over 1e-300..0.5, or simply in the body."""
    from ellipsum import QuadraticForm

    form = QuadraticForm(case.weights, case.dof, case.noncentrality, case.normal_sd)
    upper = bool(rng.random() < 0.6)
    log10 = -rng.uniform(0.3, 3) if rng.random() < 0.4 else -(10 ** rng.uniform(0.4, 2.47))
    p = 10.0**log10
    q = float(form.isf(p) if upper else form.ppf(p))
    return float(f"{q:.9g}"), upper


FEW_WEIGHTS = ((1.0,), (1.0, -0.7), (1.0, 0.3, -1e-4), (-1.0, -1e-30, 1e-8))
FEW_DOF = (1e-3, 0.03, 0.6, 1.8)  # in all
FEW_Q = (1e-250, 1e-60, 1e-12, 1e-5, 0.01, 1.0, 20.0, 400.0, 1200.0)


def low_dof_cases():
    """One- and two-sided, with and without a small normal term; q on both sides of 0."""
    for weights, total, sd in itertools.product(FEW_WEIGHTS, FEW_DOF, (0.0, 1e-9)):
        w = np.array(weights)
        share = np.array([0.5, 0.3, 0.2])[: w.size]
        case = Case(w, short(total * share / share.sum(), 4), np.zeros(w.size), sd)
        for q in FEW_Q:
            for sign in (1.0, -1.0):
                reach = np.abs(w[sign * w > 0]).max(initial=sd)
                # scaled to the tail's own weight, where q is not near 0
                x = sign * (q if q < 1e-4 else float(f"{q * reach:.9g}"))
                if (sd == 0 and not (sign * w > 0).any()) or (reach == sd and abs(x) > 30 * sd):
                    continue
                yield case, x, sign > 0


def main_low_dof(out: str) -> None:
    rows = []
    for index, (case, q, upper) in enumerate(low_dof_cases()):
        upper, tail, density = smaller_tail(case, q, upper)
        rows.append((index, case, q, upper, float(tail.mid()), float(density.mid())))
    save(out, rows)
    print(f"{len(rows)} cases")


def main(count: int, out: str, seed: int = 20260901) -> None:
    import warnings

    warnings.simplefilter("ignore")
    rows, skipped = [], 0
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        kind = CLASSES[index % len(CLASSES)]
        case = draw_case(rng, kind)
        try:
            q, upper = draw_q(rng, case)
            if not math.isfinite(q) or (q == 0 and case.normal_sd == 0):
                raise ArithmeticError("q is at the edge")
            upper, tail, density = smaller_tail(case, q, upper)
            if not (float(tail.mid()) > 1e-305 and 1e-305 < float(density.mid()) < 1e305):
                raise ArithmeticError("outside the range of doubles")
        except (ArithmeticError, ValueError, OverflowError, ZeroDivisionError) as error:
            skipped += 1
            print(f"case {index} ({kind}) skipped: {error}", file=sys.stderr)
            continue
        rows.append((index, case, q, upper, float(tail.mid()), float(density.mid())))
        if index % 250 == 249:
            save(out, rows)
            print(f"{index + 1} drawn, {len(rows)} kept", file=sys.stderr)
    save(out, rows)
    print(f"{len(rows)} cases, {skipped} skipped")


def save(out: str, rows: list) -> None:
    np.savez_compressed(
        out,
        index=np.array([r[0] for r in rows], dtype=np.int32),
        size=np.array([r[1].weights.size for r in rows], dtype=np.int32),
        weights=np.concatenate([r[1].weights for r in rows]),
        dof=np.concatenate([r[1].dof for r in rows]),
        noncentrality=np.concatenate([r[1].noncentrality for r in rows]),
        normal_sd=np.array([r[1].normal_sd for r in rows]),
        q=np.array([r[2] for r in rows]),
        upper=np.array([r[3] for r in rows]),
        tail=np.array([r[4] for r in rows]),
        pdf=np.array([r[5] for r in rows]),
    )


if __name__ == "__main__":
    main_low_dof(sys.argv[2]) if sys.argv[1] == "low_dof" else main(int(sys.argv[1]), sys.argv[2])
