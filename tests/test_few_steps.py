"""What takes few steps on Numba is Python's: the same bits, and nothing waits for a compiler."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from ellipsum.kernels.twins import FormTable, jit

WATCHED = """
import numpy as np
from numba.core.event import Listener, register

compiled = []

class Compiled(Listener):
    def on_start(self, event):
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        compiled.append(getattr(function, "__module__", ""))

    def on_end(self, event):
        pass

register("numba:compile", Compiled())
import ellipsum

assert ellipsum.backend().name == "numba"
ellipsum.Ellipsoid.for_covariance(np.eye(6) + 0.5, [0.0] * 6)
form = ellipsum.QuadraticForm([1.0, 0.5, -0.2], [1.0, 2.0, 3.5], [0.3, 4.0, 0.0])
form.isf([1e-9, 0.3])
form.sf(1.0)
print(sorted({module for module in compiled if ".form" in module}))
form.isf(np.full(3000, 0.3))
print(any(".form" in module for module in compiled))
"""


def law(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.choice([0, 1, 2, 5, 40]))
    weights = 10.0 ** rng.uniform(-3, 0, d) * rng.choice([-1, 1, 1], d)
    dof, noncentrality = rng.choice([0.01, 0.5, 1.0, 2.0, 50.0], d), rng.choice([0, 0, 0.3, 9.0], d)
    return FormTable(weights, dof, noncentrality, 0.3 if d == 0 else float(rng.choice([0, 0.3])))


def answers(table):
    found = []
    for log_tail in (-0.7, -20.0, -600.0):
        for upper in (True, False):
            quantile = table.quantile(log_tail, upper)
            out, many = np.empty((2, 6)), np.empty((2, 2))
            q = np.array([quantile[0], 0.3])
            table.tails(q, out, threads=2)
            table.quantiles(np.full(2, log_tail), np.array([upper, 1.0]), many)
            found += [quantile, table.tail(quantile[0]), out.ravel(), many.ravel()]
    return np.concatenate([np.array(each, dtype=float) for each in found])


@pytest.mark.parametrize("seed", range(40))
def test_python_and_compiled_functions_agree(seed, monkeypatch):
    """To the last bits; those of the sums of a few laws are added in another order."""
    table = law(seed)
    by_python = answers(table)
    monkeypatch.setattr(jit, "FEW_STEPS", 0)
    compiled = answers(table)
    np.testing.assert_allclose(by_python, compiled, rtol=1e-13, atol=1e-18)


def test_the_first_region_and_a_few_tails_compile_no_form(tmp_path):
    more = {"ELLIPSUM_BACKEND": "numba", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", WATCHED]
    done = subprocess.run(
        command, env=os.environ | more, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]", "True"]


@njit(error_model="numpy")
def _quotient(a, b):
    return a / b


def test_what_python_raises_is_left_to_compiled_functions():
    assert jit.run(1, _quotient, 1.0, 0.0) == np.inf
    assert jit.run(1, _quotient, 1.0, 4.0) == 0.25
    with pytest.raises(ZeroDivisionError):
        _quotient.py_func(1.0, 0.0)


HARD = (np.array([1, -1, 1e-3]), np.array([1, 1, 1e8]), np.zeros(3), 0.0)


def test_python_gives_up_what_takes_too_many_calls(monkeypatch):
    """One tail of this law takes 1.3 million of them."""
    table = FormTable(*HARD)
    monkeypatch.setattr(jit, "FEW_STEPS", 0)
    compiled = table.tail(0.7)
    monkeypatch.undo()
    ran = []
    monkeypatch.setattr(jit, "MOST_CALLS", 10_000)
    monkeypatch.setattr(jit, "_by_python", lambda f, by=jit._by_python: ran.append(f) or by(f))
    assert table.tail(0.7) == compiled and len(ran) == 1
    out = np.empty((3, 6))
    table.tails(np.full(3, 0.7), out)
    np.testing.assert_array_equal(out, [compiled] * 3)


@pytest.mark.parametrize("seed", range(20))
def test_no_answer_hangs_on_threads(seed):
    """Python raises at some of these: then all of a call is compiled, whatever its parts."""
    table, rng = law(seed), np.random.default_rng(seed)
    q = np.concatenate([[1e20, 0.0, 1e308, -1e308, 5e-62], rng.normal(size=7)])
    once, twice = np.empty((2, q.size, 6))
    table.tails(q, once, threads=1)
    table.tails(q, twice, threads=2)
    np.testing.assert_array_equal(once, twice)


def test_the_arguments_alone_decide(monkeypatch):
    """Not what was compiled by then: a call has the same bits in every process."""
    taken = []
    monkeypatch.setattr(jit, "_by_python", lambda f: taken.append("python") or f.py_func)
    for steps in (jit.FEW_STEPS, jit.FEW_STEPS + 1, 1):
        taken.append(steps)
        jit.run(steps, _quotient, 1.0, 4.0)
    assert taken == [jit.FEW_STEPS, "python", jit.FEW_STEPS + 1, 1, "python"]
