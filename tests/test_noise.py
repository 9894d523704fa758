"""Key stream and rounded Gaussian noise: definition, bounds, sameness everywhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from ellipsum import noise
from ellipsum.kernels import exact_gaussian, twins
from ellipsum.kernels.backend import use_kernels

KEY = bytes(range(32))
REFERENCE = Path(__file__).parent / "reference"
NO_WORDS = np.empty(0, dtype=np.uint64)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load("rounded_gaussian")


def words_of(key: bytes, n: int, count: int = 3) -> list[np.ndarray]:
    return [noise.keystream(n, key=key, nonce=k) for k in range(count)]


def exact(sigma: float, words: list[int]) -> int:
    return exact_gaussian.nearest(sigma, lambda k: words[k] if k < len(words) else 0)


# ---- the definition ---------------------------------------------------------------------


def assert_nearest(n: int, sigma: float, key: bytes) -> None:
    samples = noise.rounded_gaussian(n, sigma, key=key)
    words = words_of(key, n)
    for i, sample in enumerate(samples.tolist()):
        bits = [int(w[i]) for w in words]
        assert reference.is_nearest(sample, sigma, bits), f"{i=} {sigma=} {sample=} {bits=}"


@pytest.mark.parametrize("sigma", [0.3, 5.0, 2.0**26, 1e9 / 7, 2.0**45, 2.0**58])
def test_samples_are_the_reference_ones(sigma):
    assert_nearest(1000, sigma, KEY)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "n"), [(2.0**26, 40_000), (2.0**45, 30_000), (0.3, 30_000)])
def test_a_hundred_thousand_samples_are_the_reference_ones(sigma, n):
    assert_nearest(n, sigma, b"rounded Gaussian, one by one ...")


def edge_words() -> list[int]:
    """Ends of the range, of the fast path, of octaves, table intervals and both halves."""
    tails = {0, 1, 2, 3, 2**63 - 1, 2**63 - 2, 2**63 - 513, 2**62 + 2**61}
    for k in (1, 10, 24, 30, 44, 46, 47, 48, 52, 53, 54, 60, 61, 62):
        tails |= {2**k + (i << k >> 4) + e for i in range(16) for e in (-1, 0, 1)}
        tails |= {int(2 ** (k + 0.5)) + e for e in (-300, -1, 0, 1, 300)}
    tails = {m for m in tails if 0 <= m < 2**63}
    return sorted(tails | {2**64 - 1 - m for m in tails})


@pytest.fixture(scope="module")
def edge_samples() -> dict[float, list[int]]:
    sigmas = (2.0**-20, 0.3, 3.0, 2.0**26 + 1, 2.0**44, 2.0**58)
    return {s: [exact(s, [w, 0x9E3779B97F4A7C15]) for w in edge_words()] for s in sigmas}


def test_chosen_bits_give_the_exact_samples(kernels, edge_samples):
    first = np.array(edge_words(), dtype=np.uint64)
    second = np.full_like(first, 0x9E3779B97F4A7C15)
    for sigma, want in edge_samples.items():
        out = np.empty(first.size, dtype=np.int64)
        undecided = kernels.rounded_gaussian_of_words(out, np.array([sigma]), first, second)
        for i in undecided.tolist():
            out[i] = exact(sigma, [int(first[i]), int(second[i])])
        np.testing.assert_array_equal(out, want, err_msg=f"{sigma=}")


def boundary_words(sigma: float, k: int, count: int) -> int:
    """Phi((k + 1/2)/sigma) to `count` words, as an integer."""
    bits = 64 * count
    t = (exact_gaussian.Fraction(2 * k + 1, 2)) / exact_gaussian.Fraction(sigma)
    return (1 << bits) - 1 - exact_gaussian.tail(t, bits)


@pytest.mark.parametrize(("sigma", "k"), [(0.3, 0), (0.3, 1), (1e6, 123456), (2.0**40, 3 << 40)])
def test_bits_at_a_rounding_boundary_are_decided_by_later_words(kernels, sigma, k):
    middle = boundary_words(sigma, k, 4)
    for shift, want in [(-5, k), (5, k + 1)]:
        bits = middle + (shift << 64)
        words = [bits >> (64 * j) & (2**64 - 1) for j in (3, 2, 1, 0)]
        first, second = (np.array([w], dtype=np.uint64) for w in words[:2])
        out = np.empty(1, dtype=np.int64)
        undecided = kernels.rounded_gaussian_of_words(out, np.array([sigma]), first, second)
        assert undecided.tolist() == [0]
        assert exact(sigma, words) == want
        mirrored = [2**64 - 1 - w for w in words]
        assert exact(sigma, [*mirrored, 2**64 - 1]) == -want


def test_what_the_kernels_leave_undecided_is_resolved_from_the_same_stream():
    want = noise.rounded_gaussian(50, [2.0**26, 0.3, 7.0], key=KEY)

    class Undecided:
        keystream = staticmethod(twins.keystream)

        @staticmethod
        def rounded_gaussian(out, sigma, key, start, threads):
            return np.arange(out.size)

    with use_kernels(Undecided):
        got = noise.rounded_gaussian(50, [2.0**26, 0.3, 7.0], key=KEY)
    np.testing.assert_array_equal(got, want)


def test_constant_bits_are_refused_after_704_of_them():
    with pytest.raises(RuntimeError, match="degenerate"):
        exact_gaussian.nearest(1.0, lambda k: 0)


# ---- the bound of the fast path ---------------------------------------------------------


def spread_words(n: int) -> np.ndarray:
    """Words whose tail probability has a uniform logarithm in the fast path's range."""
    bits = np.linspace(15.001, 62.9999, n)
    mantissa = np.exp2(bits).astype(np.uint64)
    return np.where(np.arange(n) % 2, ~mantissa, mantissa)


@pytest.fixture(scope="module")
def spread() -> tuple[np.ndarray, list[Any]]:
    words = spread_words(6000)
    return words, [reference.quantile([w]) for w in words.tolist()]


def test_the_fast_path_keeps_its_error_bound(kernels, spread):
    sigma = 2.0**48  # an integer step of the result is 2^-48 in z
    words, quantiles = spread
    out = np.empty(words.size, dtype=np.int64)
    kernels.rounded_gaussian_of_words(out, np.array([sigma]), words, NO_WORDS)
    for word, sample, z in zip(words.tolist(), out.tolist(), quantiles, strict=True):
        m = min(word, 2**64 - 1 - word)
        error = abs(sample / sigma - z)
        assert error <= 0.75 * 2.0**-46 + 1.95 / m + 2.0**-49, f"{word=} {float(error)=}"


@pytest.mark.parametrize("sigma", [2.0**20, 2.0**30])
def test_ambiguity_is_as_rare_as_the_bound_says(kernels, sigma):
    n = 1 << 16
    words = noise.keystream(n, key=KEY)
    out = np.empty(n, dtype=np.int64)
    found = kernels.rounded_gaussian_of_words(out, np.array([sigma]), words, NO_WORDS).size
    expected = n * 2 * sigma * 2.0**-46
    assert found <= expected + 6 * np.sqrt(expected) + 1


# ---- the same everywhere ----------------------------------------------------------------


@pytest.mark.parametrize("sigma", [2.0**-20, 0.3, 40.0, 2.0**26, 2.0**38, 2.0**45])
def test_every_backend_and_instruction_set_gives_the_same_integers(kernels, sigma):
    n = 3000 if sigma > 2.0**40 else 20_000
    got = noise.rounded_gaussian(n, sigma, key=KEY)
    digest = np.bitwise_xor.reduce(got.view(np.uint64) * np.arange(1, 2 * n, 2, dtype=np.uint64))
    assert SAME.setdefault(sigma, int(digest)) == int(digest)


SAME: dict[float, int] = {}


@pytest.mark.parametrize("threads", [2, 3, 8, 1000])
@pytest.mark.parametrize("d", [1, 7])
def test_threads_do_not_change_the_samples(kernels, threads, d):
    sigma = np.linspace(2.0**26, 2.0**32, d)
    one = noise.rounded_gaussian(20_001, sigma, key=KEY, threads=1)
    np.testing.assert_array_equal(
        noise.rounded_gaussian(20_001, sigma, key=KEY, threads=threads), one
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 9, 127, 129, 1023, 1025, 5000])
def test_a_shorter_fill_is_a_prefix(kernels, n):
    longer = noise.rounded_gaussian(5001, 1e8, key=KEY)
    np.testing.assert_array_equal(noise.rounded_gaussian(n, 1e8, key=KEY), longer[:n])


@pytest.mark.parametrize("start", [1, 8, 1000, 1024, 4099])
def test_a_fill_may_start_at_any_sample(kernels, start):
    whole, part = np.empty(6000, dtype=np.int64), np.empty(6000 - start, dtype=np.int64)
    noise._fill(whole, np.array([2.0**40]), KEY, 1)
    noise._fill(part, np.array([2.0**40]), KEY, 1, start)
    np.testing.assert_array_equal(part, whole[start:])


@pytest.mark.parametrize("d", [2, 3, 8, 1000, 1500, 9000])
def test_columns_have_their_own_sigma(kernels, d):
    sigma = 2.0 ** np.linspace(-3, 30, d)
    got = noise.rounded_gaussian(4 * d, sigma, key=KEY)
    for j in (0, 1, d // 2, d - 1):
        column = noise.rounded_gaussian(4 * d, sigma[j], key=KEY)[j::d]
        np.testing.assert_array_equal(got[j::d], column)


# ---- the distribution -------------------------------------------------------------------


def chi_square_p_value(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Cells expected below 20 are pooled at each end."""
    n = counts.sum()
    keep = np.flatnonzero(n * probabilities >= 20)
    edges = [0, *keep[1:], counts.size]
    seen = np.add.reduceat(counts, edges[:-1])
    wanted = n * np.add.reduceat(probabilities, edges[:-1])
    return float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), seen.size - 1))


@pytest.mark.parametrize(("sigma", "shift"), [(3.0, 0), (2.0**26, 20)])
@pytest.mark.parametrize("n", [10**6, pytest.param(10**8, marks=pytest.mark.slow)])
def test_samples_pass_a_chi_square_test(sigma, shift, n):
    # Cell c holds the integers from c * 2^shift on; the keys are fixed, so no false alarm.
    cells = 1024
    counts = np.zeros(cells, dtype=np.int64)
    for block in range(0, n, 10**6):
        part = noise.rounded_gaussian(10**6, sigma, key=block.to_bytes(32, "little"))
        counts += np.bincount((part >> shift) + cells // 2, minlength=cells)
    edges = (np.arange(-cells // 2, cells // 2 + 1) * 2.0**shift - 0.5) / sigma
    upper = -edges[:-1] > 0
    below, above = np.diff(ndtr(edges)), -np.diff(ndtr(-edges))
    assert chi_square_p_value(counts, np.where(upper, below, above)) > 1e-4


def test_fresh_keys_give_fresh_noise():
    a, b = (noise.rounded_gaussian(8, 2.0**40) for _ in range(2))
    assert (a != b).any()  # equal with a chance below 2^-300


# ---- doubles on a grid ------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.7, 1e-290, 3e200])
def test_gaussian_is_the_rounded_sample_on_its_grid(scale):
    grid = 2.0 ** (np.frexp(scale)[1] - 27.0)
    assert 2.0**26 <= scale / grid < 2.0**27
    got = noise.gaussian(1000, scale, key=KEY)
    np.testing.assert_array_equal(got, grid * noise.rounded_gaussian(1000, scale / grid, key=KEY))


def test_gaussian_takes_a_scale_and_a_grid_for_each_column():
    scale, grid = np.array([1.0, 1e-3, 50.0]), np.array([2.0**-10, 2.0**-30, 8.0])
    got = noise.gaussian((100, 3), scale, key=KEY, grid=grid)
    flat = noise.rounded_gaussian(300, scale / grid, key=KEY)
    np.testing.assert_array_equal(got, flat.reshape(100, 3) * grid)
    assert noise.gaussian((2, 5, 3), scale).shape == (2, 5, 3)
    assert noise.gaussian((), 1.0).shape == ()
    assert noise.gaussian(5, 1.0, grid=0.5).dtype == np.float64


# ---- what is refused, and what is wiped -------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "phrase"),
    [
        ({"n": -1}, ValueError, "n must be at least 0"),
        ({"n": 1.5}, TypeError, "n must be a whole number, got float"),
        ({"sigma": 0.0}, ValueError, "sigma must be a finite number above 0"),
        ({"sigma": float("nan")}, ValueError, "sigma must be a finite number above 0"),
        ({"sigma": "1"}, TypeError, "sigma must be a number"),
        ({"sigma": 2.0**59}, ValueError, "sigma must be at most 2\\*\\*58"),
        ({"sigma": [1.0, -1.0]}, ValueError, "sigma must be finite and above 0"),
        ({"sigma": []}, ValueError, "sigma must be one-dimensional and not empty"),
        ({"key": b"short"}, ValueError, "key must have 32 bytes, got 5"),
        ({"key": "k" * 32}, TypeError, "key must be 32 bytes, got an object of type str"),
        ({"key": 7}, TypeError, "key must be 32 bytes, got an object of type int"),
        ({"threads": 0}, ValueError, "threads must be at least 1"),
        ({"threads": 1.5}, TypeError, "threads must be a whole number"),
    ],
)
def test_bad_arguments_are_named(arguments, error, phrase):
    with pytest.raises(error, match=phrase):
        noise.rounded_gaussian(**{"n": 4, "sigma": 1.0, "key": KEY} | arguments)


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        ({"grid": 3.0}, "grid must be a power of two"),
        ({"grid": -0.5}, "grid must be a finite number above 0"),
        ({"scale": [1.0, 2.0]}, "scale must be a number or have one entry for each column"),
        ({"grid": 2.0**-70}, "grid is too fine"),
        ({"scale": 1e-310}, "scale must be above"),
    ],
)
def test_bad_scales_are_named(arguments, phrase):
    with pytest.raises(ValueError, match=phrase):
        noise.gaussian(**{"size": (4, 3), "scale": 1.0, "key": KEY} | arguments)


def test_a_bad_nonce_is_named():
    with pytest.raises(ValueError, match="nonce must be at least 0 and at most"):
        noise.keystream(1, key=KEY, nonce=2**64)
    with pytest.raises(ValueError, match="nonce must be at least 0"):
        noise.keystream(1, key=KEY, nonce=-1)


def test_the_thread_count_can_come_from_the_environment(monkeypatch):
    want = noise.rounded_gaussian(5000, 3.0, key=KEY)
    monkeypatch.setenv("ELLIPSUM_THREADS", "2")
    np.testing.assert_array_equal(noise.rounded_gaussian(5000, 3.0, key=KEY), want)
    monkeypatch.setenv("ELLIPSUM_THREADS", "many")
    with pytest.raises(ValueError, match="ELLIPSUM_THREADS must be a whole number"):
        noise.rounded_gaussian(5, 3.0, key=KEY)


def test_the_copy_of_the_key_is_wiped_and_the_callers_is_not(monkeypatch):
    mine, copies = bytearray(KEY), []

    def copied(key, known=noise._copied):
        copies.append(known(key))
        assert copies[-1] == KEY and copies[-1] is not mine
        return copies[-1]

    monkeypatch.setattr(noise, "_copied", copied)
    noise.rounded_gaussian(5, 3.0, key=mine)
    noise.keystream(5, key=mine)
    monkeypatch.setattr(noise, "kernels", lambda: None)  # which has no such function: it fails
    for draw in (
        lambda: noise.rounded_gaussian(5, 3.0, key=mine),
        lambda: noise.keystream(5, key=mine),
    ):
        with pytest.raises(AttributeError):
            draw()
    assert copies == [bytes(32)] * 4 and mine == KEY


def test_keys_may_be_any_buffer():
    want = noise.keystream(4, key=KEY)
    for key in (bytearray(KEY), memoryview(KEY), np.frombuffer(KEY, dtype=np.uint8)):
        np.testing.assert_array_equal(noise.keystream(4, key=key), want)


# ---- the constants ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_constants_are_those_that_their_script_computes():
    script = REFERENCE / "gaussian_coefficients.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("arithmetic", ["avx512", "avx2", "plain"])
def test_the_derived_rounding_bound_is_below_the_constants(arithmetic):
    from ellipsum.kernels.twins.gaussian_coefficients import DENOMINATOR, NUMERATOR

    assert load("gaussian_error").shortfall(NUMERATOR, DENOMINATOR, arithmetic) < 0
