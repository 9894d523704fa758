"""Rounded Gaussian noise: ns per sample, for every target, beside NumPy's ziggurat.

pytest bench/bench_noise.py --benchmark-columns=min,median -s
"""

from __future__ import annotations

import platform
from importlib.metadata import version

import numpy as np
import pytest

from ellipsum import noise
from ellipsum.kernels import twins

try:
    from ellipsum.kernels import _core
except ImportError:
    _core = None

KEY = bytes(range(32))
N = 1 << 20
SIGMA = 2.0**26
TARGETS = [*(_core.targets() if _core else []), "numba"]


@pytest.fixture(scope="module", autouse=True)
def machine() -> None:
    print(
        f"\n{platform.processor() or platform.machine()}, {platform.platform()}, "
        f"ellipsum {version('ellipsum')}, NumPy {np.__version__}; "
        "-O3 -ffp-contract=off, flags of each target in CMakeLists.txt"
    )


def report(benchmark, name: str) -> None:
    nanoseconds = benchmark.stats.stats.min / N * 1e9
    benchmark.extra_info["ns_per_sample"] = nanoseconds
    BEST[name] = nanoseconds
    ratio = f", {BEST['numpy'] / nanoseconds:.2f} x NumPy's speed" if "numpy" in BEST else ""
    print(f"\n{name}: {nanoseconds:.2f} ns per sample{ratio}")


BEST: dict[str, float] = {}


@pytest.mark.benchmark(group="Gaussian noise, 2^20 samples")
def test_numpy_ziggurat(benchmark):
    generator, out = np.random.default_rng(1), np.empty(N)
    benchmark(generator.standard_normal, out=out)
    assert abs(out.std() - 1) < 0.01
    report(benchmark, "numpy")


@pytest.mark.benchmark(group="Gaussian noise, 2^20 samples")
@pytest.mark.parametrize("columns", [1, 1000])
@pytest.mark.parametrize("target", TARGETS)
def test_rounded_gaussian(benchmark, monkeypatch, target, columns):
    kernels = twins if target == "numba" else _core
    monkeypatch.setattr(noise, "kernels", kernels)
    if kernels is _core:
        _core.choose_target(target)
    sigma = np.full(columns, SIGMA)
    out = np.empty(N, dtype=np.int64)
    benchmark(kernels.rounded_gaussian, out, sigma, KEY, 0, 1)
    if _core:
        _core.choose_target("")
    want = noise.rounded_gaussian(1000, SIGMA, key=KEY)
    np.testing.assert_array_equal(out[:1000], want)
    report(benchmark, f"{target}, {columns} columns")


@pytest.mark.benchmark(group="key stream, 2^20 words")
@pytest.mark.parametrize("target", TARGETS)
def test_keystream(benchmark, target):
    kernels = twins if target == "numba" else _core
    if kernels is _core:
        _core.choose_target(target)
    out = np.empty(N, dtype=np.uint64)
    benchmark(kernels.keystream, out, KEY, 0, 0)
    if _core:
        _core.choose_target("")
    np.testing.assert_array_equal(out[:100], noise.keystream(100, key=KEY))
    report(benchmark, f"key stream, {target}")
