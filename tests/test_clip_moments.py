"""Joint tail moments of Q and a coordinate, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from ellipsum.shapes import clip_moments
from ellipsum.shapes.clip_moments import TailDensity


@pytest.mark.parametrize("d", [1, 2, 5, 40, 300])
@pytest.mark.parametrize("noncentral", [0.0, 0.7, 30.0])
def test_the_density_of_equal_weights_is_the_chi_square_one(d, noncentral):
    law = TailDensity(np.full(d, 0.3), np.full(d, noncentral))
    q, _, density, square = law.densities(np.ones((d, 1)))
    if noncentral:
        want = ncx2.pdf(q / 0.3, d, d * noncentral) / 0.3
    else:
        want = chi2.pdf(q / 0.3, d) / 0.3
    far = want > 1e-13 * want.max()  # the reference itself is not good beyond
    assert far.sum() > 50
    np.testing.assert_allclose(density[far], want[far], rtol=1e-9)
    np.testing.assert_allclose(square[far, 0], (q * want)[far], rtol=1e-9)


def test_the_mean_of_one_coordinate_given_its_square_is_the_hyperbolic_tangent():
    w, lam = 0.4, 1.7
    q, _, density, _, first = TailDensity(np.array([w]), np.array([lam])).densities(
        np.ones((1, 1)), np.ones((1, 1))
    )
    want = np.sqrt(q) * np.tanh(np.sqrt(lam * q / w))
    near = density > 1e-12 * density.max()
    np.testing.assert_allclose((first[:, 0] / density)[near], want[near], rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.02, 0.5, 1.0, 2.0])
def test_merged_weights_change_nothing_that_matters(alpha, monkeypatch):
    w = np.arange(1, 200.0) ** -alpha
    law, columns = TailDensity(w / w.sum(), np.zeros(w.size)), np.eye(w.size)[:, [0, 7, 190]]
    q, dq, density, square = law.densities(columns)
    monkeypatch.setattr(TailDensity, "_binned", lambda self: (w / w.sum(), 0 * w, np.ones_like(w)))
    _, _, want, want_square = law.densities(columns)
    for cut in (0, q.size // 4, q.size // 2):
        np.testing.assert_allclose((dq * density)[cut:].sum(), (dq * want)[cut:].sum(), rtol=5e-3)
        for k in range(3):
            got, exact = (dq * square[:, k])[cut:].sum(), (dq * want_square[:, k])[cut:].sum()
            np.testing.assert_allclose(got, exact, rtol=5e-3)


def test_weights_with_a_close_second_largest_keep_the_contour_off_the_branch_point():
    w = np.concatenate([[1.0, 0.97], np.full(60, 1e-4)])
    law = TailDensity(w, np.zeros(w.size))
    q, dq, density, square = law.densities(np.eye(w.size)[:, :2])
    rng = np.random.default_rng(1)
    z2 = rng.chisquare(1, size=(2_000_000, 2))
    total = z2 @ w[:2] + 1e-4 * rng.chisquare(60, size=len(z2))
    for level in (2.0, 9.0):
        share = np.mean(total > level)
        assert abs((dq * density)[q > level].sum() / share - 1) < 0.04
        for k in range(2):
            want = np.mean(w[k] * z2[:, k] * (total > level))
            assert abs((dq * square[:, k])[q > level].sum() / want - 1) < 0.04


def test_the_panels_reach_far_into_the_tail():
    law = TailDensity(np.array([0.9, 0.1]), np.array([0.0, 4.0]))
    assert law.edges().size == clip_moments._PANELS + 1
    _, dq, density, _ = law.densities(np.ones((2, 1)))
    assert 0 < density[-1] < 1e-13
    assert 0.5 < np.sum(dq * density) < 0.9


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("noncentral", [0.0, 0.7])
def test_a_contour_serves_the_panels_that_share_it(d, noncentral, monkeypatch):
    """One contour for each q gives the same, so that sharing costs no digit."""
    law = TailDensity(np.linspace(0.1, 1, d), np.full(d, noncentral))
    _, _, density, square = law.densities(np.ones((d, 1)))
    monkeypatch.setattr(clip_moments, "_NODES_SHARED", 1)
    _, _, want, want_square = law.densities(np.ones((d, 1)))
    far = want > 1e-13 * want.max()
    np.testing.assert_allclose(density[far], want[far], rtol=1e-12)
    np.testing.assert_allclose(square[far], want_square[far], rtol=1e-12)
