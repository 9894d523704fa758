"""Fixtures that several test modules share: regions, and every set of kernels of this machine."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum import Ellipsoid, _backend, _fallback, exact_sum
from regions import make_regions

try:
    from ellipsum import _core
except ImportError:  # a pure-Python install: the Numba twins are all there is
    _core = None

KERNEL_SETS = ["numba"] + ([] if _core is None else [f"cpp-{t}" for t in _core.targets()])


@pytest.fixture(params=KERNEL_SETS)
def kernel_set(request, monkeypatch):
    """Run a test under each backend and each instruction set that this machine has."""
    name = request.param
    if name == "numba":
        monkeypatch.setattr(exact_sum, "kernels", _fallback)
        yield name
        return
    _core.choose_target(name.removeprefix("cpp-"))
    monkeypatch.setattr(exact_sum, "kernels", _core)
    yield name
    chosen = _backend.backend()
    _core.choose_target(chosen.cpu if chosen.name == "cpp" else "")


@pytest.fixture(params=["ball", "box", "ellipsoid", "matrix"])
def region(request) -> Ellipsoid:
    """A region of each kind with 13 coordinates."""
    return make_regions(13)[request.param]


@pytest.fixture
def rows() -> np.ndarray:
    """400 rows of 13 coordinates, some of them outside every region."""
    return 2.0 * np.random.default_rng(7).standard_t(3, size=(400, 13))
