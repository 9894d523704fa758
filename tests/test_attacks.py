"""Attacks on noise: each breaks the naive mechanism it was made for, and nothing here.

docs/attacks.md says what each one is; those on sums and on promises are in test_attacks_sum.py.
"Breaks" is a statement about samples: an event whose probability under one neighbour is, with
Clopper and Pearson's limits, more than e^epsilon times that under the other plus delta. Every
check of the package raises a false alarm with probability 1e-8 or less (there are fewer than 50,
and the keys are fixed, so they are decided once).
"""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chisquare, ks_2samp, spearmanr

from attack import LEVEL, SIGMA, ULP, breaks, key, released
from ellipsum.kernels.exact_gaussian import nearest
from ellipsum.kernels.twins import noise as twin
from ellipsum.noise import rounded_gaussian


def uniform_low_bits(integers, bits=8):
    """p of the hypothesis that the last bits are as good as coins."""
    low = np.asarray([int(i) & (2**bits - 1) for i in integers])
    return chisquare(np.bincount(low, minlength=2**bits)).pvalue


# ---- Mironov 2012: which doubles can come out ------------------------------------------------


def inverse_cdf_noise(k):
    """The textbook: Phi^-1 of a multiple of 2^-53."""
    return SIGMA * ndtri(k * ULP)


def possible(y, x, reach=24):
    """Is there a k near where it must be for which x + noise is this double, bit for bit?"""
    middle = np.rint(ndtr((y - x) / SIGMA) / ULP)
    return np.any(
        [x + inverse_cdf_noise(middle + step) == y for step in range(-reach, reach + 1)], axis=0
    )


def test_mironov_tells_a_zero_from_a_one_by_the_doubles_that_cannot_be():
    rng, runs, d = np.random.default_rng(1), 400, 64
    guesses = []
    for x in (0.0, 1.0):
        k = rng.integers(1, 2**53, size=(runs, d)).astype(np.float64)
        y = x + inverse_cdf_noise(k)
        assert possible(y, x).all()  # what did happen is never called impossible
        guesses.append(possible(y, 0.0).all(axis=1))
    assert guesses[0].all() and guesses[1].mean() < 0.01
    assert breaks(*guesses)


def test_mironov_finds_no_number_that_only_one_neighbour_can_release():
    d, runs = 64, 400
    every, naive_view = [], []
    for x in (0.0, 1.0):
        releases = [released(x, d, key("mironov", x, i)) for i in range(runs)]
        integers = np.concatenate([r.integers for r in releases])
        every.append(integers)
        # The doubles printed are a function of the integers, the same one for both neighbours...
        grid, scale = releases[0].parameters["grid"], 1 / math.sqrt(d)  # 2 half-widths sum to d
        for r in releases[:20]:
            want = 0.5 + r.integers.astype(float) * grid / scale
            np.testing.assert_array_equal(r.value, want)
        # ... of which each is as possible as the next; so is it to the test that works above.
        assert uniform_low_bits(integers) > LEVEL
        naive_view.append(np.array([possible(r.value, 0.0).all() for r in releases]))
    assert not breaks(*naive_view)


@pytest.mark.parametrize("log_sigma", [20, 26, 40, 55, 58])
def test_every_integer_can_be_drawn_at_any_noise_level(log_sigma):
    """A double times sigma leaves gaps from sigma = 2^52 or so on; a rounded real does not."""
    n, sigma = 60_000, 2.0**log_sigma
    assert uniform_low_bits(rounded_gaussian(n, sigma, key=key("bits", log_sigma))) > LEVEL
    naive = np.rint(sigma * np.random.default_rng(2).standard_normal(n))
    assert (uniform_low_bits(naive) < LEVEL) == (log_sigma > 50)


# ---- Jin, McMurtry, Rubinstein & Ohrimenko 2022: Gaussian samplers, and their time -----------


def box_muller(k, m):
    """Two Gaussians of two multiples of 2^-53, as doubles."""
    radius, angle = math.sqrt(-2 * math.log(k * ULP)), 2 * math.pi * (m * ULP)
    return radius * math.cos(angle), radius * math.sin(angle)


def polar(k, m):
    """Marsaglia's form: a point (2u - 1, 2v - 1) of the unit disk, or None outside."""
    a, b = 2 * (k * ULP) - 1, 2 * (m * ULP) - 1
    square = a * a + b * b
    if not 0 < square < 1:
        return None
    factor = math.sqrt(-2 * math.log(square) / square)
    return a * factor, b * factor


def words_of_box_muller(z, w):
    return math.exp(-(z * z + w * w) / 2) / ULP, math.atan2(w, z) / (2 * math.pi) % 1 / ULP


def words_of_polar(z, w):
    energy = z * z + w * w
    shrink = math.exp(-energy / 4) / math.sqrt(energy)
    return (z * shrink + 1) / 2 / ULP, (w * shrink + 1) / 2 / ULP


def possible_pair(forward, backward, y, x, reach=8):
    """Are there two words near where they must be that make these two doubles, bit for bit?"""
    k, m = (round(word) for word in backward((y[0] - x) / SIGMA, (y[1] - x) / SIGMA))
    near = range(-reach, reach + 1)
    for dk, dm in itertools.product(near, near):
        if not (0 < k + dk < 2**53 and 0 <= m + dm < 2**53):
            continue
        found = forward(k + dk, m + dm)
        if found and (x + SIGMA * found[0], x + SIGMA * found[1]) == y:
            return True
    return False


@pytest.mark.parametrize(
    "forward, backward", [(box_muller, words_of_box_muller), (polar, words_of_polar)]
)
def test_jin_tells_which_gaussians_a_sampler_cannot_have_made(forward, backward):
    rng, runs, pairs = np.random.default_rng(4), 150, 12
    guesses = []
    for x in (0.0, 1.0):
        feasible = np.ones(runs, bool)
        for run in range(runs):
            for _ in range(pairs):
                made = None
                while made is None:
                    made = forward(*(int(w) for w in rng.integers(1, 2**53, size=2)))
                y = (x + SIGMA * made[0], x + SIGMA * made[1])
                assert possible_pair(forward, backward, y, x)
                feasible[run] = feasible[run] and possible_pair(forward, backward, y, 0.0)
        guesses.append(feasible)
    assert guesses[0].all() and guesses[1].mean() < 0.1
    assert breaks(*guesses)


@pytest.mark.parametrize(
    "forward, backward", [(box_muller, words_of_box_muller), (polar, words_of_polar)]
)
def test_jin_finds_nothing_in_a_release(forward, backward):
    runs = 150
    guesses = []
    for x in (0.0, 1.0):
        values = [released(x, 2, key("jin", x, i)).value for i in range(runs)]
        guesses.append(np.array([possible_pair(forward, backward, tuple(v), 0.0) for v in values]))
    assert not breaks(*guesses)


class Coins:
    """Random bits, and how often they were asked for: what a stopwatch sees."""

    def __init__(self, seed):
        self.rng, self.asked = np.random.default_rng(seed), 0

    def uniform(self):
        self.asked += 1
        return self.rng.random()


def discrete_laplace(scale, coins):
    """Canonne, Kamath & Steinke 2020, Algorithm 2: a geometric number of loops."""
    while True:
        u = int(coins.uniform() * scale)
        if coins.uniform() >= math.exp(-u / scale):
            continue
        v = 0
        while coins.uniform() < math.exp(-1):
            v += 1
        value, negative = u + scale * v, coins.uniform() < 0.5
        if value or not negative:
            return -value if negative else value


def test_jin_reads_a_discrete_sampler_by_its_time():
    times, sizes = [], []
    for seed in range(3000):
        coins = Coins(seed)
        sizes.append(abs(discrete_laplace(5, coins)))
        times.append(coins.asked)
    assert spearmanr(times, sizes).statistic > 0.2
    slow = np.array(times) > np.median(times)
    sizes = np.array(sizes)
    assert sizes[slow].mean() > 1.5 * sizes[~slow].mean()


def lines_run(function, *arguments):
    """How often each line of a Python function is run."""
    counts = {}

    def local(frame, event, _):
        if event == "line":
            counts[frame.f_lineno] = counts.get(frame.f_lineno, 0) + 1
        return local

    def first(frame, event, argument):
        return local if frame.f_code is function.__code__ else None

    before = sys.gettrace()
    sys.settrace(first)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return counts


def test_jin_finds_that_every_sample_runs_the_same_lines():
    """The fast path, in the source that the Numba twin compiles: no line is a sample's own."""
    words = np.random.default_rng(5).integers(0, 2**64, size=400, dtype=np.uint64)
    extreme = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    steps, polynomials = twin._gaussian_of_words, twin._quantiles.py_func
    seen = set()
    for word in np.concatenate([words, extreme]):
        out, f = np.empty(1, np.int64), np.array([float(word) / 2**65 - 0.25])
        with np.errstate(all="ignore"):
            one = lines_run(steps, np.array([word]), np.array([2.0**20]), out)
            two = lines_run(polynomials, np.array([64.0]), f, np.empty(1))
        seen.add((tuple(sorted(one.items())), tuple(sorted(two.items()))))
    assert len(seen) == 1 and min(map(len, next(iter(seen)))) > 10


def test_jin_learns_no_size_from_what_takes_the_slow_path():
    """Where 64 bits leave two integers possible is a matter of the fraction, not of the size."""
    n, sigma = 1 << 19, 2.0**36  # one sample in 2^9 is ambiguous
    out = np.empty(n, np.int64)
    found = twin.rounded_gaussian(out, np.array([sigma]), key("slow path"), 0, 1)
    assert 300 < len(found) < 3000
    sizes = np.abs(out) / sigma
    body = sizes < 3  # the far tail's words are coarser: docs/guarantees/noise.md says so
    slow = np.zeros(n, bool)
    slow[found] = True
    assert ks_2samp(sizes[slow & body], sizes[~slow & body]).pvalue > LEVEL


# ---- Haney et al. 2022: how many bits come out -----------------------------------------------


def finer_than(y, unit):
    return y / unit != np.rint(y / unit)


def test_haney_sees_by_its_last_bits_that_nothing_was_added_to_the_noise():
    """The noise may be as good as it likes: the addition rounds it to what the sum can hold."""
    rng, runs, d = np.random.default_rng(6), 300, 64
    guesses = []
    for x in (0.0, 1.0):
        y = x + SIGMA * rng.standard_normal((runs, d))
        guesses.append(finer_than(y, ULP).any(axis=1))
    assert not guesses[1].any() and guesses[0].mean() > 0.95
    assert breaks(*guesses)


def trailing_zeros(integers):
    return np.array([min((int(i) & -int(i)).bit_length() - 1, 8) if i else 8 for i in integers])


def test_haney_finds_as_many_bits_in_either_release():
    """round(T + Z) for the real T + Z, as by refining an interval till its ends agree."""
    d, runs = 64, 300
    zeros, guesses = [], []
    for x in (0.0, 1.0):
        releases = [released(x, d, key("haney", x, i)) for i in range(runs)]
        found = trailing_zeros(np.concatenate([r.integers for r in releases]))
        counts = np.bincount(found, minlength=9)
        law = np.array([2.0 ** -(k + 1) for k in range(8)] + [2.0**-8])
        assert chisquare(counts, law * found.size).pvalue > LEVEL
        zeros.append(found)
        values = np.array([r.value for r in releases])
        guesses.append(finer_than(values, ULP).any(axis=1))
    assert ks_2samp(*zeros).pvalue > LEVEL
    assert not breaks(*guesses)


def test_haney_s_intervals_end_in_the_same_integer_wherever_they_begin():
    """T + round(Z) is round(T + Z): refining the interval of the sum gives the same release."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        words = [int(w) for w in rng.integers(0, 2**64, size=12, dtype=np.uint64)]
        sigma, exact = float(2.0 ** rng.uniform(0, 40)), int(rng.integers(-(2**40), 2**40))
        bits = sum(word << (64 * (11 - i)) for i, word in enumerate(words[:12]))
        z = _quantile_to_300_bits(bits, 64 * 12)
        refined = _nearest_integer(exact + _times(sigma, z))
        assert exact + nearest(sigma, lambda i, words=words: words[i]) == refined


def _quantile_to_300_bits(bits, width):
    import mpmath

    with mpmath.workprec(900):
        u = (mpmath.mpf(bits) + mpmath.mpf("0.5")) / mpmath.mpf(2) ** width
        return mpmath.sqrt(2) * mpmath.erfinv(2 * u - 1)


def _times(sigma, z):
    import mpmath

    with mpmath.workprec(900):
        return mpmath.mpf(sigma) * z


def _nearest_integer(x):
    import mpmath

    with mpmath.workprec(900):
        return int(mpmath.nint(x))
