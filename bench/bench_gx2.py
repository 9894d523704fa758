"""The generalized chi-square distribution beside gx2, the Python port of the MATLAB toolbox.

    python -m pip install gx2 && python bench/bench_gx2.py [EVERY]

Accuracy is of the smaller tail of every EVERY-th case (default 40) of the reference table, which
neither package made: 30 digits by flint (tests/reference). Time is of one tail at one point, with
what each package has to prepare for it. The gradients are those of the cdf in all parameters.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import measure
from bench_quadratic_form import TABLE, own_table
from ellipsum import QuadraticForm, backend

REPEATS = 5

#: A double has no digits below: gx2 then gives a logarithm, or 0.
LEAST = 1e-290


class Case(NamedTuple):
    """One entry of the table: parameters, point, which tail is the smaller, and its value."""

    parameters: tuple[Any, ...]
    q: float
    upper: bool
    tail: float


def cases(every: int) -> list[Case]:
    """Every so many of the table's cases."""
    found = []
    for form, q, upper, tail, _ in own_table(TABLE):
        flat = (form.weights, form.dof, form.noncentrality, form.normal_sd, form.offset)
        found.append(Case(flat, q, upper, tail))
    return [case for case in found[::every] if case.tail > LEAST]


def kinds(all_cases: list[Case]) -> Iterator[tuple[str, list[Case]]]:
    """The cases by what makes them hard."""

    def has(test: Callable[[Case], bool]) -> list[Case]:
        return [case for case in all_cases if test(case)]

    yield "all", all_cases
    yield "tail above 1e-6", has(lambda c: c.tail > 1e-6)
    yield "tail 1e-290 to 1e-6", has(lambda c: c.tail <= 1e-6)
    yield "weights of one sign", has(lambda c: bool((c.parameters[0] > 0).all()))
    yield "weights of both signs", has(lambda c: bool((c.parameters[0] < 0).any()))
    yield "with a normal term", has(lambda c: c.parameters[3] > 0)


def ours(case: Case) -> float:
    form = QuadraticForm(*case.parameters)
    return float(form.sf(case.q) if case.upper else form.cdf(case.q))


def theirs(gx2: Any) -> Callable[[Case], float]:
    def tail(case: Case) -> float:
        side = "upper" if case.upper else "lower"
        return float(np.ravel(gx2.cdf(case.q, *case.parameters, side=side))[0])

    return tail


def measured(call: Callable[[Case], float], some: list[Case]) -> list[tuple[float, float]]:
    """Relative error (infinite where there is no value) and seconds of each case."""
    found = []
    for case in some:
        try:
            error = abs(call(case) / case.tail - 1)
            seconds = measure.best(lambda: call(case), repeats=1, clock=time.perf_counter)[0]  # noqa: B023
        except (ValueError, ArithmeticError, IndexError, np.linalg.LinAlgError):
            error, seconds = math.inf, math.nan
        found.append((error if math.isfinite(error) else math.inf, seconds))
    return found


def line(name: str, found: list[tuple[float, float]]) -> str:
    errors, seconds = np.array(found).T
    within = "  ".join(f"{100 * np.mean(errors <= limit):5.1f}" for limit in (1e-10, 1e-6, 1e-2))
    return f"  {name:10} {within}   {np.median(errors):8.1e}   {1e6 * np.nanmedian(seconds):9.0f}"


def accuracy(gx2: Any, every: int) -> None:
    some = cases(every)
    answers = {"ellipsum": measured(ours, some), "gx2": measured(theirs(gx2), some)}
    print(f"{len(some)} cases; backend {backend()}; gx2 {gx2.__version__}, its default method")
    print(f"{'':12} {'% within 1e-10, 1e-6, 1e-2':22} {'median':>9} {'us, median':>12}")
    for kind, members in kinds(some):
        places = [k for k, case in enumerate(some) if any(case is other for other in members)]
        print(f"{kind} ({len(places)})")
        for name, found in answers.items():
            print(line(name, [found[k] for k in places]))


def gradients(gx2: Any) -> None:
    """The derivatives of one cdf in its 11 parameters, which both packages have."""
    parameters = ([1.0, -5.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 7.0], 5.0, 5.0)
    form = QuadraticForm(*parameters)
    print("gradient of a cdf in 11 parameters, largest difference over the largest derivative")
    for q in (25.0, 120.0, 200.0):
        mine = form.cdf_gradient(q)
        flat = np.array([*mine.weights, *mine.dof, *mine.noncentrality, *mine[3:5]])
        other = np.ravel(gx2.cdf_grad_gx2(q, *parameters))
        pair = (
            lambda: QuadraticForm(*parameters).cdf_gradient(q),  # noqa: B023
            lambda: gx2.cdf_grad_gx2(q, *parameters),  # noqa: B023
        )
        seconds = measure.best(*pair, repeats=REPEATS, clock=time.perf_counter)
        print(
            f"  q = {q:5g}, P(Q > q) = {form.sf(q):.1e}: "
            f"{np.max(abs(other - flat)) / np.max(abs(flat)):.1e}; ellipsum "
            f"{1e6 * seconds[0]:.0f} us, gx2 {1e6 * seconds[1]:.0f} us"
        )


def main() -> None:
    try:
        import gx2
    except ImportError:
        sys.exit("gx2 is not installed: python -m pip install gx2")
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        accuracy(gx2, every)
        gradients(gx2)


if __name__ == "__main__":
    main()
