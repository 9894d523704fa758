"""Quantiles: few evaluations of the tail and a round trip, on distributions that are hard."""

import collections
import math
import sys

import numpy as np
import pytest

from ellipsum.kernels import backend as _backend
from ellipsum.kernels import twins
from reference_tables import reference_cases

pytestmark = pytest.mark.usefixtures("compiled_twins")

CLASSES = ("few", "both signs", "normal", "spike", "conflict", "edge", "single", "decades")


def drawn(index):
    """A distribution, the logarithm of a tail, and which: most classes have a spike at 0."""
    rng = np.random.default_rng([5, index])
    kind = CLASSES[index % len(CLASSES)]
    d = int(rng.choice([1, 2, 3, 5, 12]))
    w = 10.0 ** rng.uniform(-rng.uniform(0, 6), 0, d)
    k = rng.dirichlet(np.ones(d)) * 10.0 ** rng.uniform(-3, 0.3)
    nc, sd = np.zeros(d), 0.0
    if kind in ("both signs", "spike"):
        d = max(d, 2)
        w = np.resize(w, d) * rng.uniform(0.5, 1, d)
        k, nc = rng.dirichlet(np.ones(d)) * 10.0 ** rng.uniform(-3, 0.3), np.zeros(d)
        sign = rng.choice([-1.0, 1.0], d)
        sign[:2] = 1, -1
        w = w * sign
    elif kind == "normal":
        w, sd = w * rng.choice([-1.0, 1.0], d), 10.0 ** rng.uniform(-12, 0)
    elif kind == "conflict":
        d = max(d, 2)
        w = np.where(np.arange(d) % 2, -1, 1) * 10.0 ** rng.uniform(-6, 0, d)
        k = rng.choice([0.05, 0.5, 1, 3.7, 20, 500], d)
        nc = np.where(rng.random(d) < 0.5, 10.0 ** rng.uniform(-2, 5, d), 0)
        sd = float(rng.choice([0, 0, 1e-3, 1]))
    elif kind == "edge":
        k = rng.choice([0.05, 0.5, 1, 3.7, 20], d)
        nc = np.where(rng.random(d) < 0.3, 10.0 ** rng.uniform(-2, 3, d), 0)
    elif kind == "single":
        nc = np.array([0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 4)])
        w, k = w[:1], np.array([10.0 ** rng.uniform(-3, 3)])
    elif kind == "decades":
        w = 10.0 ** rng.uniform(-100, 0, d) * rng.choice([-1.0, 1.0], d)
    if rng.random() < 0.5:
        log_tail = -math.log(10) * rng.uniform(0.30103, 300)
    elif rng.random() < 0.5:
        log_tail = -rng.uniform(math.log(2), 37)
    else:
        log_tail = math.log(rng.uniform(0, 0.5))
    return (w, k, nc, float(sd)), float(log_tail), bool(rng.random() < 0.5)


def evaluations(kernels, parameters, log_tail, upper):
    """How many tails the quantile takes, and that it is one wherever the tail itself is."""
    table = kernels.FormTable(*parameters)
    q, error, count = table.quantile(log_tail, upper)
    small, log_pdf, tail_error, _, is_upper, _ = table.tail(q)
    if abs(q) > 1e-290 and tail_error < 1e-12:  # nearer to 0 the doubles end before the spike does
        found = small if is_upper == upper else math.log1p(-math.exp(small))
        condition = abs(q) * math.exp(log_pdf - found) * 2.0**-51
        wanted = pytest.approx(log_tail, abs=1e-11 + condition)
        assert found == wanted, (parameters, log_tail, upper)
        assert error < 1e-11
    return count


@pytest.mark.parametrize("backend", sorted({"numba", _backend.backend().name}))
def test_hard_quantiles_take_at_most_seven_evaluations(backend):
    """Spikes of 1e-3 to 2 degrees of freedom, conflicts, edges, scales over a hundred decades."""
    kernels, n = (twins, 400) if backend == "numba" else (_backend.kernels(), 4000)
    counts = collections.Counter(evaluations(kernels, *drawn(i)) for i in range(n))
    assert max(counts) <= 7, counts
    assert sum(c * m for c, m in counts.items()) <= 3.2 * n


@pytest.mark.parametrize("backend", sorted({"numba", _backend.backend().name}))
def test_quantiles_of_the_reference_distributions_take_three_evaluations(backend):
    kernels = twins if backend == "numba" else _backend.kernels()
    counts = []
    for parameters, case in reference_cases("quadratic_form_reference.npz"):
        if case["index"] % 10 == 0 or backend != "numba":
            log_tail = min(math.log(case["tail"]), -0.7)
            table = kernels.FormTable(*parameters)
            counts.append(table.quantile(log_tail, bool(case["upper"]))[2])
    assert np.median(counts) <= 3
    assert np.mean(np.array(counts) <= 7) >= 0.9998


@pytest.mark.parametrize("backend", sorted({"numba", _backend.backend().name}))
def test_a_quantile_below_the_doubles_is_zero_or_denormal(backend):
    """Half a spike of total dof 1e-3 lies below 1e-308."""
    kernels = twins if backend == "numba" else _backend.kernels()
    for weights in ([1.0], [1.0, -0.5], [1e-200, -1e-100]):
        w = np.array(weights)
        table = kernels.FormTable(w, np.full(w.size, 1e-3 / w.size), np.zeros(w.size), 0.0)
        q, error, count = table.quantile(math.log(0.45), False)
        assert abs(q) < 1e-290 and error < 1 and count <= 3


if __name__ == "__main__":  # python test_quadratic_form_quantile.py 40000: counts of evaluations
    found = (evaluations(_backend.kernels(), *drawn(i)) for i in range(int(sys.argv[1])))
    print(sorted(collections.Counter(found).items()))
