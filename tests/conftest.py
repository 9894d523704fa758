"""Fixtures that several test modules share: regions, and every set of kernels of this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from cpu_seconds import CpuSeconds
from ellipsum import Ellipsoid
from ellipsum.kernels.backend import use_kernels
from plain_noise import noise_of_seeds
from regions import KERNEL_SETS, _core, make_regions


def pytest_addoption(parser):
    parser.addoption("--cpu-seconds", action="store_true", help="print processor time of tests")


def pytest_configure(config):
    if config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuSeconds())


@pytest.fixture(params=KERNEL_SETS)
def kernel_set(request):
    """Run a test under each backend and each instruction set that this machine has."""
    with use_kernels(request.param):
        yield request.param


@pytest.fixture(params=KERNEL_SETS)
def kernels(request):
    """The functions of each backend and instruction set, in the place of the chosen ones."""
    with use_kernels(request.param) as module:
        yield module


@pytest.fixture(params=[] if _core is None else _core.targets())
def target(request):
    """Each instruction set that this machine has, in turn."""
    before = _core.choose_target("")
    yield _core.choose_target(request.param)
    _core.choose_target(before)


@pytest.fixture(params=["ball", "box", "ellipsoid", "matrix", "low-rank"])
def region(request) -> Ellipsoid:
    """A region of each kind with 13 coordinates."""
    return make_regions(13)[request.param]


@pytest.fixture
def compiled_twins(monkeypatch):
    """Numba's own functions, however few their steps are."""
    monkeypatch.setattr("ellipsum.kernels.twins.jit.FEW_STEPS", 0)


@pytest.fixture
def same_noise_everywhere():
    """Noise of seeds that no last bit of a processor's libraries changes."""
    with noise_of_seeds():
        yield


@pytest.fixture
def memory_path(tmp_path):
    """An empty folder in memory, where there is one: for tests that wait for the disk often."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.fixture
def without_rest(monkeypatch):
    """A checkpoint whenever one is asked for, however soon after another."""
    monkeypatch.setattr("ellipsum.jobs.checkpoint.REST", 0)


@pytest.fixture
def rows() -> np.ndarray:
    """400 rows of 13 coordinates, some of them outside every region."""
    return 2.0 * np.random.default_rng(7).standard_t(3, size=(400, 13))
