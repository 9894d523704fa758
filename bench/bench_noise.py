"""Rounded Gaussian noise: ns per sample, for every target, beside NumPy's ziggurat.

pytest bench/bench_noise.py --benchmark-columns=min,median -s
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import measure
from ellipsum import noise
from ellipsum.kernels.backend import use_kernels
from ellipsum.records import RecordRelease

try:
    from ellipsum.kernels import _core
except ImportError:
    _core = None

KEY = bytes(range(32))
N = 1 << 20
SIGMA = 2.0**26
TARGETS = [*(f"cpp-{name}" for name in (_core.targets() if _core else [])), "numba"]


@pytest.fixture(scope="module", autouse=True)
def machine() -> None:
    print(f"\n{measure.machine()}")


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
def test_rounded_gaussian(benchmark, target, columns):
    sigma = np.full(columns, SIGMA)
    out = np.empty(N, dtype=np.int64)
    with use_kernels(target) as kernels:
        benchmark(kernels.rounded_gaussian, out, sigma, KEY, 0, 1)
    want = noise.rounded_gaussian(1000, SIGMA, key=KEY)
    np.testing.assert_array_equal(out[:1000], want)
    report(benchmark, f"{target}, {columns} columns")


@pytest.mark.benchmark(group="key stream, 2^20 words")
@pytest.mark.parametrize("target", TARGETS)
def test_keystream(benchmark, target):
    out = np.empty(N, dtype=np.uint64)
    with use_kernels(target) as kernels:
        benchmark(kernels.keystream, out, KEY, 0, 0)
    np.testing.assert_array_equal(out[:100], noise.keystream(100, key=KEY))
    report(benchmark, f"key stream, {target}")


@pytest.mark.benchmark(group="local releases of 100,000 records of 64 float32")
@pytest.mark.parametrize("law", ["gaussian", "privunit"])
def test_local_release(benchmark, monkeypatch, law):
    """What cheaper noise could save: its share of the time."""
    rows = np.random.default_rng(0).standard_normal((100_000, 64)).astype(np.float32)
    budget = {"epsilon": 4.0, **({"delta": 1e-6} if law == "gaussian" else {})}
    release = RecordRelease(noise=law, threads=1, **budget).fit(rows[:2000])
    benchmark(release.transform, rows)
    drawn, real = [], noise.rounded_gaussian

    def timed(*arguments, **options):
        start = time.perf_counter()
        out = real(*arguments, **options)
        drawn.append(time.perf_counter() - start)
        return out

    monkeypatch.setattr(noise, "rounded_gaussian", timed)
    shares = []
    for _ in range(5):
        drawn.clear()
        start = time.perf_counter()
        released = release.transform(rows)
        shares.append(sum(drawn) / (time.perf_counter() - start))
    nanoseconds = benchmark.stats.stats.min / released.size * 1e9
    share = f"{min(shares):.0%} to {max(shares):.0%}"
    print(f"\nlocal release, {law}: {nanoseconds:.1f} ns a number, of which noise {share}")
