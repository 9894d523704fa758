"""PrivateRegression's second pass: its sensitivity, its share of the budget, what it finds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ellipsum import Budget, calibrate, open_rows
from ellipsum.adaptive.passes import Passes
from ellipsum.records import PrivateRegression, private_moments, second_pass
from ellipsum.records.second_pass import (
    PRIOR,
    REACHES,
    SECOND_SHARE,
    factor_of,
    reach_of,
    slope_sum,
    slopes,
)

CENTER, SCALE = np.array([0.5, -1.0, 2.0, 0.0]), np.array([1.0, 0.5, 2.0, 1.0])
COEF = np.array([1.0, -0.3, 0.7])


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) / SCALE[:3] * np.exp(rng.normal(size=(n, 1)))
    y = np.tanh((x * SCALE[:3]) @ COEF) + 0.3 * rng.normal(size=n)
    return np.column_stack([x + CENTER[:3], y])


def summed(rows, reach=2.0):
    total = slope_sum(Passes(rows, 4), CENTER, SCALE, COEF, reach)
    return total.integers(), total.ellipsoid


ODD = [
    np.full(4, np.nan),
    np.full(4, np.inf),
    np.array([np.inf, -np.inf, 0.0, 1.0]),
    np.full(4, 1e308),
    np.array([-1e308, 1e308, 1e308, -1e308]),
    np.array([1e154, 0.0, 0.0, -1e154]),
    np.array([1e3, 0.0, 0.0, -1e3]),
    np.array([2.0, 0.0, 0.0, -3.0]),
    CENTER,
]


@pytest.mark.parametrize("reach", [REACHES[0], 2.0, REACHES[1]])
def test_no_row_moves_the_second_sums_by_more_than_their_sensitivity(reach):
    rng = np.random.default_rng(1)
    rows = rows_of(300)
    base, region = summed(rows, reach)
    most = {"add-remove": 0.0, "replace": 0.0}
    hard = [*ODD, *(np.sign(rng.normal(size=4)) * 10.0 ** rng.uniform(-3, 9, 4) for _ in range(60))]
    for row in hard:
        at = int(rng.integers(301))
        more, _ = summed(np.insert(rows, at, row, axis=0), reach)
        other = rows.copy()
        other[17] = row
        swapped, _ = summed(other, reach)
        for relation, found in (("add-remove", more), ("replace", swapped)):
            moved = math.hypot(*(float(v) for v in found - base)) * region.grid
            most[relation] = max(most[relation], moved / region.sensitivity(relation))
    one, other = (summed(np.vstack([rows, r]), reach)[0] for r in (ODD[7], [0, 2.0, 0, 9.0]))
    most["replace"] = max(
        most["replace"],
        math.hypot(*(float(v) for v in one - other)) * region.grid / region.sensitivity("replace"),
    )
    assert most["add-remove"] <= 1 and most["replace"] <= 1
    assert most["add-remove"] > 0.999 and most["replace"] > 0.5  # nearly as much does happen


def test_what_a_row_adds_does_not_depend_on_its_place():
    """The sums of all rows and of those without one differ by that one alone, to the bit."""
    rows = rows_of(257, seed=3)
    rows[5, 1], rows[9] = np.nan, 1e300
    whole = slopes(CENTER, SCALE, COEF, rows)
    for start in (1, 2, 3, 5):
        assert np.array_equal(whole[start:], slopes(CENTER, SCALE, COEF, rows[start:]), True)
    alone = np.vstack([slopes(CENTER, SCALE, COEF, row[None]) for row in rows])
    assert np.array_equal(whole, alone, True)
    base, _ = summed(rows)
    assert (base == summed([rows[:100], rows[100:]])[0]).all()
    assert (base == sum(summed(row[None])[0] for row in rows)).all()


def noise_levels(monkeypatch, **options):
    """Noise levels of both passes and their sensitivities, in grid units; the fit."""
    drawn = []

    def told(module):
        real = module.rounded_gaussian

        def draw(count, sigma, **more):
            drawn.append((count, sigma))
            return real(count, sigma, **more)

        monkeypatch.setattr(module, "rounded_gaussian", draw)

    told(private_moments)
    told(second_pass)
    reaches = []
    real_sum = second_pass.slope_sum

    def seen(*given):
        total = real_sum(*given)
        reaches.append(total.ellipsoid)
        return total

    monkeypatch.setattr(second_pass, "slope_sum", seen)
    fit = PrivateRegression(2.0, center=CENTER, scale=SCALE, **options).fit(rows_of(400))
    monkeypatch.undo()
    return drawn, reaches, fit


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", [{"mu": 0.7}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 2.0}])
def test_both_passes_together_spend_the_budget_and_no_more(monkeypatch, neighbors, budget):
    drawn, regions, fit = noise_levels(monkeypatch, neighbors=neighbors, **budget)
    assert [count for count, _ in drawn] == [10, 2]
    radius2, grid = 4.0, fit.sd_ / drawn[0][1]
    lowest = radius2 * (math.sqrt(2) if neighbors == "replace" else 1.0) / grid
    second = regions[0].sensitivity(neighbors) / regions[0].grid
    spent = (Fraction(lowest) / Fraction(drawn[0][1])) ** 2
    last = (Fraction(second) / Fraction(drawn[1][1])) ** 2
    promised = 1 / Fraction(fit.guarantee_.noise_multiplier) ** 2
    assert spent + last <= promised and spent + last > promised * Fraction(999, 1000)
    assert float(last / promised) == pytest.approx(SECOND_SHARE, rel=1e-6)
    assert fit.guarantee_.noise_multiplier == calibrate.noise_multiplier(**budget)


def test_rows_that_are_read_once_have_one_pass_and_the_whole_budget(tmp_path):
    rows = rows_of(400)
    options = {"center": CENTER, "scale": SCALE, "mu": 1.0, "seed": 3}
    twice = PrivateRegression(2.0, **options).fit(rows)
    once = PrivateRegression(2.0, **options).fit(iter([rows]))
    given = PrivateRegression(2.0, stretch=1.5, **options).fit(rows)
    assert once.sd_ == given.sd_
    assert twice.sd_ == pytest.approx(once.sd_ / math.sqrt(1 - SECOND_SHARE), rel=1e-12)
    # Noise of one key at two levels would give the moments away.
    true = clipped_moments(rows)
    noise = [(fit.moments_ - true) / fit.sd_ for fit in (twice, once)]
    assert np.abs(noise[0] - noise[1]).max() > 0.1
    budget = Budget(mu=2.0)
    with pytest.raises(TypeError, match="read only once"):
        PrivateRegression(2.0, stretch="measured", **options).fit(iter([rows]), budget=budget)
    assert not budget.entries
    np.save(tmp_path / "a.npy", rows[:99])
    np.save(tmp_path / "b.npy", rows[99:])
    again = (
        (lambda: iter([rows[:99], rows[99:]])),
        open_rows(tmp_path / "*.npy"),
        list(rows[:, None]),
    )
    for data in again:
        assert (PrivateRegression(2.0, **options).fit(data).coef_ == twice.coef_).all()


def clipped_moments(rows):
    z = (rows - CENTER) * SCALE
    z *= np.minimum(1, 2.0 / np.linalg.norm(z, axis=1, keepdims=True))
    return z.T @ z


def test_the_second_pass_finds_the_slope_of_rows_that_the_clip_shortens():
    """tanh: long rows have a lower slope, and the moments of clipped rows do not show it."""
    rows, fresh = rows_of(20_000, seed=5), rows_of(20_000, seed=6)

    def explained(**given):
        options = {"center": CENTER, "scale": SCALE, "mu": 3.0, "seed": 1}
        fit = PrivateRegression(1.0, **given, **options).fit(rows)
        return 1 - np.mean((fresh[:, -1] - fit.predict(fresh[:, :-1])) ** 2) / np.var(fresh[:, -1])

    by_moments = explained(ridge="stein", stretch="stein")
    measured = explained()
    z = (rows - CENTER) * SCALE
    best = 1 - np.mean(
        (z[:, -1] - z[:, :-1] @ np.linalg.lstsq(z[:, :-1], z[:, -1], rcond=None)[0]) ** 2
    ) / np.var(rows[:, -1])
    assert measured > by_moments + 0.05 and measured < best + 0.02
    assert explained(ridge=1.0, stretch="measured") > by_moments + 0.05


def test_the_factor_is_shrunk_to_one_by_its_noise_and_stays_finite():
    assert factor_of(30.0, 50.0, 0.0) == 1.3
    assert factor_of(30.0, 50.0, 100 * PRIOR) == pytest.approx(1 + 30 * 100 / (100**2 + 100**2))
    assert factor_of(-1e9, 50.0, 1.0) == 0.0 and factor_of(1e9, 50.0, 1.0) == 2.0
    assert factor_of(30.0, -5.0, 1.0) == 1.0
    assert factor_of(30.0, 1e200, 1.0) == 1.0 and factor_of(1.0, 1.0, 1e200) == 1.0
    assert factor_of(0.0, 0.0, 1e200) == 1.0
    assert reach_of(0.0, 1.0) == REACHES[0] and reach_of(1e9, 1.0) == REACHES[1]
    assert reach_of(math.nan, 1.0) == REACHES[0]
    assert REACHES[0] < reach_of(100.0, 5.0) < REACHES[1]
    with pytest.raises(ValueError, match="stretch must be"):
        PrivateRegression(1.0, mu=1.0, stretch="second").fit(rows_of(5))
    with pytest.raises(ValueError, match="ridge must be"):
        PrivateRegression(1.0, mu=1.0, ridge="measured").fit(rows_of(5))
    with pytest.raises(ValueError, match="a column beside"):
        PrivateRegression(1.0, mu=1.0).fit(np.ones((5, 1)))
