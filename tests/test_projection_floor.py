"""The floor of a projection: the worst pair, what rounding Phi costs, the reference cases."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from ellipsum import calibrate
from ellipsum.guarantee import Neighbors
from ellipsum.records import GaussianPair, PrivateProjection
from ellipsum.records.projection_floor import ProjectionGuarantee, Rounding, largest_ratio

TRUTH = Path(__file__).parents[2] / "shared/data/records_truth.json"


def reference_ratios():
    if not TRUTH.exists():
        pytest.skip("the reference table of the records is not beside this checkout")
    return json.loads(TRUTH.read_text())["projection"]["cases"]


def worst(pair, epsilon):
    return max(float(pair.delta(epsilon)), float(pair.reverse.delta(epsilon)))


# ---- reference cases -----------------------------------------------------------------


def test_ratios_are_the_reference_ones_and_never_above():
    for case in reference_ratios():
        relation = Neighbors.of(case["neighbors"])
        ratio = largest_ratio(case["rows"], case["epsilon"], case["delta"], relation)
        assert case["r2"] * (1 - 1e-7) < ratio <= case["r2"] * (1 + 1e-11), case


def test_the_floor_is_the_radius_over_the_root_of_the_ratio():
    for case in reference_ratios():
        budget = {name: case[name] for name in ("epsilon", "delta", "neighbors", "rows")}
        floor = PrivateProjection(radius=3.0, d=10, **budget).floor
        wanted = 3.0 / math.sqrt(case["r2"])
        assert wanted <= floor < wanted * (1 + 1e-6), case


def test_the_floor_covers_the_longest_row_of_integers():
    mechanism = PrivateProjection(rows=50, radius=3.0, d=10**5, epsilon=1.0, delta=1e-6)
    longest = mechanism._sketch.clip.row_bound * mechanism._sketch.clip.grid
    assert longest > 3.0 * (1 + 3e-6)
    assert mechanism.floor * math.sqrt(mechanism.guarantee.ratio) >= longest


@pytest.mark.parametrize(("rows", "one", "other"), [(100, 35.5, 43.4), (1000, 100.0, 133.7)])
def test_the_published_floors(rows, one, other):
    """records: w^2 per R^2 at (1, 1e-6)."""
    for relation, wanted in ((Neighbors.ADD_REMOVE, one), (Neighbors.REPLACE, other)):
        assert 1 / largest_ratio(rows, 1.0, 1e-6, relation) == pytest.approx(wanted, abs=0.06)


def test_many_rows_approach_the_gaussian_mechanism():
    """r^2 tends to mu sqrt(2/m) for add-remove, and to mu/sqrt(m) for replace."""
    mu = 1 / calibrate.noise_multiplier(1.0, 1e-6)
    for relation, limit in ((Neighbors.ADD_REMOVE, math.sqrt(2)), (Neighbors.REPLACE, 1.0)):
        ratio = largest_ratio(10**6, 1.0, 1e-6, relation)
        assert ratio * math.sqrt(10**6) / (mu * limit) == pytest.approx(1, abs=0.02)


# ---- claim projection-1: the worst pair -----------------------------------------------


def pair_of_tables(common, x, y, rows):
    """N(0, common + xx') against N(0, common + yy')."""
    zero = np.zeros(len(common))
    one, other = common + np.outer(x, x), common + np.outer(y, y)
    return GaussianPair(zero, one, zero, other, rows)


def in_ball(rng, d):
    """Mostly on its surface."""
    v = rng.normal(size=d)
    return v / np.linalg.norm(v) * min(1.0, 2 * rng.uniform()) ** (1 / d)


@pytest.mark.parametrize("relation", list(Neighbors))
def test_no_pair_of_tables_passes_the_worst_one(relation):
    rng = np.random.default_rng(3)
    for trial in range(150):
        d, rows, epsilon = rng.integers(1, 5), int(rng.integers(1, 60)), rng.uniform(0.2, 5)
        ratio = float(np.exp(rng.uniform(-4, 2)))
        worst_delta = Rounding(ratio, rows, 40).delta(epsilon, relation)
        table = rng.normal(size=(rng.integers(0, 4), d)) * rng.choice([0.01, 1.0])
        common = table.T @ table + np.eye(d) / ratio
        x = in_ball(rng, d) * (relation is Neighbors.REPLACE)
        pair = pair_of_tables(common, x, in_ball(rng, d), rows)
        assert worst(pair, epsilon) <= worst_delta * (1 + 1e-9), trial


@pytest.mark.parametrize("relation", list(Neighbors))
def test_a_search_over_pairs_reaches_the_worst_one_and_never_passes_it(relation):
    ratio, rows, epsilon = 0.4, 20, 1.5
    bound = Rounding(ratio, rows, 40).delta(epsilon, relation)

    def loss(v):
        x, y = v.reshape(2, 3)
        x, y = (z / max(1.0, float(np.linalg.norm(z))) for z in (x, y))
        x = x * (relation is Neighbors.REPLACE)
        found = worst(pair_of_tables(np.eye(3) / ratio, x, y, rows), epsilon)
        assert found <= bound * (1 + 1e-10)
        return -math.log(max(found, 1e-300))

    starts = np.random.default_rng(0).normal(size=(3, 6)) * 0.7
    best = min(scipy.optimize.minimize(loss, s, method="Nelder-Mead").fun for s in starts)
    assert math.exp(-best) > bound * (1 - 1e-3)


def test_the_worst_pair_bounds_every_eigenvalue():
    """The proof's one inequality: no eigenvalue outside [1/(1 + r^2), 1 + r^2], at most one on
    each side of 1."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        d, ratio = int(rng.integers(1, 6)), float(np.exp(rng.uniform(-5, 5)))
        x, y = in_ball(rng, d), in_ball(rng, d)
        first = np.eye(d) / ratio + np.outer(x, x)
        second = np.eye(d) / ratio + np.outer(y, y)
        kappa = scipy.linalg.eigh(first, second, eigvals_only=True)
        assert (kappa < (1 + ratio) * (1 + 1e-9)).all()
        assert (kappa > 1 / (1 + ratio) * (1 - 1e-9)).all()
        assert (kappa > 1 + 1e-9).sum() <= 1 and (kappa < 1 - 1e-9).sum() <= 1


# ---- claim projection-2: rounded Phi --------------------------------------------------


def lattice_density(v, q, s):
    """Of phi' + s N, phi' a standard normal rounded to multiples of q."""
    j = np.arange(-math.ceil(12 / q), math.ceil(12 / q) + 1)
    mass = ndtr((j + 0.5) * q) - ndtr((j - 0.5) * q)
    return norm.pdf(np.subtract.outer(v, j * q), scale=s) @ mass


def smeared_density(v, q, s):
    """Of a normal of variance 1 + s^2 with a uniform error of width q."""
    size = math.sqrt(1 + s * s)
    return (ndtr((v + q / 2) / size) - ndtr((v - q / 2) / size)) / q


@pytest.mark.parametrize(("q", "s"), [(0.5, 0.6), (1.0, 1.0), (0.25, 0.3), (1.0, 3.0)])
def test_a_rounded_column_is_a_gaussian_with_a_uniform_error_to_the_lattices_term(q, s):
    """Poisson's sum: |f/g - 1| <= sum over k of 2 exp(-2 (pi k)^2 s^2/(1 + s^2)/q^2)."""
    v = np.linspace(-5, 5, 301)
    ratio = lattice_density(v, q, s) / smeared_density(v, q, s) - 1
    k = np.arange(1, 50)
    theta = 2 * np.exp(-2 * (math.pi * k) ** 2 * s * s / (1 + s * s) / q**2).sum()
    assert np.abs(ratio).max() < theta + 1e-8  # of the quadrature's own differences
    if theta > 1e-6:
        assert np.abs(ratio).max() > theta / 4  # and it is of that size


@pytest.mark.parametrize(("bits", "s"), [(-1, 0.5), (0, 1.0), (1, 2.0), (-2, 3.0)])
def test_the_uniform_error_lies_between_two_multiples_of_gaussians(bits, s):
    """Of the very numbers that the floor is found with."""
    cost, q, size2 = Rounding(1 / s**2, 1, bits), 2.0**-bits, 1 + s * s
    v, x = np.linspace(-9, 9, 1001), q * q / (12 * size2)
    g = smeared_density(v, q, s)
    low = norm.pdf(v, scale=math.sqrt(size2)) * math.exp(-cost.epsilon) * cost.factor
    wide = s * s * (1 + cost.ratio)  # the row's own length changes, the floor does not
    high = norm.pdf(v, scale=math.sqrt(wide)) * cost.factor
    assert (g >= low * (1 - 1e-12)).all() and (g <= high * (1 + 1e-12)).all()
    assert (g < low * math.exp(x / 4)).any(), "half of the lower loss would not do"
    assert (g > high * math.exp(-0.75 * x)).any(), "nor would much less of the upper one"
    many = Rounding(1 / s**2, 9, bits)
    assert many.epsilon == pytest.approx(9 * cost.epsilon)
    assert many.factor == pytest.approx(cost.factor**9) and many.ratio == cost.ratio


def test_all_that_rounding_costs_is_in_delta():
    cost = Rounding(0.5, 3, 0)
    pair = GaussianPair.from_spectrum([cost.ratio], 0, 3)
    wanted = cost.factor * worst(pair, 0.7 - cost.epsilon)
    assert cost.delta(0.7, Neighbors.ADD_REMOVE) == pytest.approx(wanted, rel=1e-12)
    assert cost.factor > 1.04 and cost.epsilon > 0.08 and cost.ratio > 0.54


def hockey_stick(f, g, epsilon):
    """One row's delta by quadrature of two densities on the line."""
    value, _ = quad(lambda v: max(f(v) - math.exp(epsilon) * g(v), 0.0), -40, 40, limit=2000)
    return value


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_rounded_mechanism_keeps_the_bound_and_the_exact_one_alone_would_not(ratio, epsilon):
    """m = 1, Phi rounded to whole numbers (bits = 0): what quadrature of its own law gives."""
    s = 1 / math.sqrt(ratio)
    with_row = lambda v: float(lattice_density(np.array([v]), 1.0, s)[0])  # noqa: E731
    without = lambda v: float(norm.pdf(v, scale=s))  # noqa: E731
    true = max(hockey_stick(with_row, without, epsilon), hockey_stick(without, with_row, epsilon))
    real = Rounding(ratio, 1, 40).delta(epsilon, Neighbors.ADD_REMOVE)
    bound = Rounding(ratio, 1, 0).delta(epsilon, Neighbors.ADD_REMOVE)
    lattice = 4 * math.exp(-2 * math.pi**2 * s * s / (1 + s * s))
    assert real < true <= bound * (1 + 2 * lattice) + 2 * lattice


def test_rounding_costs_almost_nothing():
    for rows in (1, 100, 10**4, 10**6):
        for relation in Neighbors:
            ratio = largest_ratio(rows, 1.0, 1e-6, relation)
            cost = Rounding(ratio, rows)
            assert cost.epsilon < 1e-6 and cost.factor < 1 + 1e-6
            real = Rounding(ratio, rows, 40).delta(1.0, relation)
            assert real <= cost.delta(1.0, relation) <= 1e-6 < real * (1 + 1e-5)


def test_the_ratio_stays_where_the_lattice_vanishes():
    """2^-1000 of the proof, at the largest ratio that is given out."""
    ratio = largest_ratio(1, 1e5, 0.5, Neighbors.ADD_REMOVE)
    assert ratio == 2.0**16
    exponent = 2 * math.pi**2 * 4.0**14 / (1 + ratio)
    assert math.log2(2**36) - exponent / math.log(2) < -1000


# ---- the guarantee ----------------------------------------------------------------------


def test_the_guarantee_answers_at_every_delta():
    ratio = largest_ratio(50, 2.0, 1e-6, Neighbors.REPLACE)
    promise = ProjectionGuarantee(Neighbors.REPLACE, 2.0, 1e-6, rows=50, ratio=ratio)
    assert promise.epsilon(1e-6) == 2.0 and promise.delta(2.0) <= 1e-6
    for delta in (1e-9, 1e-3):
        epsilon = promise.epsilon(delta)
        assert promise.delta(epsilon) <= delta < promise.delta(epsilon * (1 - 1e-6))
    assert promise.epsilon(1e-9) > 2.0 > promise.epsilon(1e-3)
    assert promise.to_dict()["kind"] == "projection" and promise.is_private
    with pytest.raises(AttributeError, match="no mu"):
        _ = promise.mu


@pytest.mark.parametrize("rows", [100, 1000, 10_000])
def test_a_renyi_conversion_needs_five_percent_more(rows):
    """Add-remove at (1, 1e-6): the best order, Canonne, Kamath & Steinke's conversion (2020)."""
    exact = largest_ratio(rows, 1.0, 1e-6, Neighbors.ADD_REMOVE)
    assert exact / renyi_ratio(rows, 1.0, 1e-6) > 1.05


def renyi_ratio(rows, epsilon, delta):
    """The largest r^2 that Renyi divergences of both directions allow."""

    def least_epsilon(r2):
        def one(up):
            def cost(log_a):
                a = 1 + math.exp(log_a)
                t = a - 1 if up else -a
                if 1 - t * r2 <= 0:
                    return 1e9
                k = rows * (-0.5 * math.log1p(-t * r2) - 0.5 * t * math.log1p(r2))
                return k / (a - 1) + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)

            grid = np.linspace(-3, 9, 400)
            at = grid[np.argmin([cost(x) for x in grid])]
            found = scipy.optimize.minimize_scalar(
                cost, bounds=(at - 0.1, at + 0.1), method="bounded"
            )
            return found.fun

        return max(one(True), one(False))

    root = scipy.optimize.brentq(lambda x: least_epsilon(math.exp(x)) - epsilon, -12, 0, xtol=1e-8)
    return math.exp(root)
