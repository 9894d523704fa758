"""``ellipsum info --warm``: compile the Numba fallback now, not in the middle of a first job."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..groups.counts import PrivateCounts
from ..groups.mechanisms import PrivateGroupMean
from ..kernels.backend import kernels
from ..noise import rounded_gaussian
from ..private_sum import PrivateMean
from ..quadratic_form import GaussianPair, QuadraticForm

__all__ = ["STEPS", "warm"]

Array = NDArray[Any]

_D = 3
_ROWS = np.random.default_rng(0).normal(size=(64, _D))  # made up: no data are read
_KEYS = np.arange(64) % 4
_MANY = 3000  # that Python does not compute them


def _layouts() -> list[Array]:
    """Rows of each type that the kernels take as it is, in either order and with gaps."""
    made: list[Array] = []
    for kind in (np.float64, np.float32):
        rows = np.ascontiguousarray(_ROWS, dtype=kind)
        gaps = np.repeat(rows, 2, axis=1)[:, ::2]
        made += [rows, np.asfortranarray(rows), gaps, _read_only(rows)]
    return made


def _read_only(rows: Array) -> Array:
    view = np.asfortranarray(rows)
    view.flags.writeable = False  # as views of a table are
    return view


def _regions() -> list[Ellipsoid]:
    """One of each kind that is compiled for itself."""
    return [
        Ellipsoid.ball(2.0, d=_D),
        Ellipsoid.box([-2.0] * _D, [2.0] * _D),
        Ellipsoid.for_covariance(np.eye(_D) + 0.5),
    ]


def _sums() -> None:
    for rows in _layouts():
        for region in _regions():
            ExactSum(region).add(rows)
            ExactSum(region, missing="ignore").add(rows)


def _plans() -> None:
    cov = np.eye(_D) + 0.5
    for rows in _layouts():
        PrivateMean(lower=[-9.0] * _D, upper=[9.0] * _D, mu=1)(rows, seed=1)
        PrivateMean(center=[0.0] * _D, radius=9, covariance=cov, mu=1)(rows, seed=1)


def _groups() -> None:
    named = np.array([f"shop {key}" for key in _KEYS])
    users = np.arange(64) // 2
    for keys, region, rows in itertools.product((_KEYS, named), _regions(), _layouts()):
        PrivateGroupMean(region, epsilon=1, delta=1e-6)(rows, key=keys, seed=1)
        twice = PrivateGroupMean(region, max_keys=2, epsilon=1, delta=1e-6)
        twice(rows, key=keys, user=users, seed=1)
    for keys in (_KEYS, named):
        PrivateCounts(epsilon=1, delta=1e-6)(keys, seed=1)
    few = PrivateMean(_regions()[0], mu=1, neighbors="add-remove", by="user", max_rows=1)
    for rows in _layouts():
        few(rows, users=users, seed=1)


def _noise() -> None:
    for sigma in (3.0, 1e6, 1e15, np.full(5, 1e6)):
        rounded_gaussian(5, sigma, key=bytes(32))


def _forms() -> None:
    law = [1.0, 0.5, -0.2], [1.0, 2.0, 3.5], [0.3, 4.0, 0.0]
    forms = [QuadraticForm(*law, 0.7, 2.0), QuadraticForm([1.0, 0.5]), QuadraticForm([1.0], [0.01])]
    forms += [QuadraticForm([], normal_sd=1.0), QuadraticForm(1 / np.arange(1, 400.0))]
    for form in forms:
        for tail in (1e-9, 0.3, 1 - 1e-9):
            q = float(np.asarray(form.isf(np.full(_MANY, tail)))[0])
            form.evaluate(np.linspace(q, q + 1, _MANY))
            form.partial_mean(q)
            form.hockey_stick(abs(q))
    forms[0].contour(1.0)
    forms[1].clip_loss(2.0)
    GaussianPair([0.0, 0.0], np.eye(2), [1.0, 0.0], 2 * np.eye(2)).delta(1.0)


#: What is compiled, and the calls that do it.
STEPS: dict[str, Callable[[], None]] = {
    "sums": _sums,
    "plans": _plans,
    "groups and users": _groups,
    "noise": _noise,
    "quadratic forms": _forms,
}


def warm() -> None:
    """Compile what is not yet in Numba's cache, and say so on standard error."""
    if hasattr(kernels(), "targets"):
        print("ellipsum: nothing to compile, the C++ kernels run", file=sys.stderr)
        return
    began = time.monotonic()
    for number, (name, step) in enumerate(STEPS.items(), 1):
        print(f"ellipsum: compiling {name} ({number} of {len(STEPS)}) ...", file=sys.stderr)
        step()
    took = time.monotonic() - began
    print(f"ellipsum: all compiled, and kept for the next time ({took:.0f} s)", file=sys.stderr)
