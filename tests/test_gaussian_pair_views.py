"""Other views of a pair of Gaussians: Renyi, trade-off, loss; hockey sticks of any form."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from ellipsum import QuadraticForm
from ellipsum.records import GaussianPair

# ---- other views --------------------------------------------------------------------------


def test_renyi_is_that_of_two_gaussians():
    """Gil, Alajaji & Linder (2013), for one dimension."""
    m, v, w = 0.7, 1.3, 0.9
    pair = GaussianPair(0.0, v, m, w)
    for a in (0.2, 0.5, 0.9, 1.5, 3.0):
        s = (1 - a) * v + a * w
        known = a * m * m / (2 * s) + math.log(s / (v ** (1 - a) * w**a)) / (2 * (1 - a))
        assert pair.renyi(a) == pytest.approx(known, rel=1e-12)
    divergence = (v + m * m) / (2 * w) - 0.5 + 0.5 * math.log(w / v)
    assert pair.renyi(1.0) == pytest.approx(divergence, rel=1e-13)
    assert pair.renyi(1 + 1e-12) == pytest.approx(divergence, rel=1e-10)
    assert pair.renyi(1 + w / (v - w)) == math.inf and pair.renyi(math.inf) == math.inf


def test_tradeoff_is_the_curve_below_all_its_tangents():
    mu = 1.7
    rates = np.array([0.0, 1e-8, 0.01, 0.3, 0.9, 1.0])
    normal = GaussianPair.from_spectrum(0, mu * mu).tradeoff(rates)
    np.testing.assert_allclose(normal, ndtr(ndtri(1 - rates) - mu), rtol=1e-9)
    pair = GaussianPair([0, 1], [1.0, 2.0], [0.3, 0], [1.4, 0.7], rows=3)
    curve = pair.tradeoff(rates)
    epsilon = np.linspace(-14, 14, 8001)
    tangents = 1 - pair.reverse.delta(epsilon) - np.exp(epsilon) * rates[:, None]
    np.testing.assert_allclose(curve, tangents.max(axis=1).clip(0), atol=4e-6)
    back = pair.reverse.tradeoff(curve[1:5])
    np.testing.assert_allclose(back, rates[1:5], rtol=1e-6)


def test_the_loss_has_the_moments_of_the_log_ratio():
    rng = np.random.default_rng(11)
    cov1, cov2 = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.3], [-0.3, 1.5]])
    mean1, mean2 = np.array([0.3, 0.0]), np.array([0.0, 0.4])
    pair = GaussianPair(mean1, cov1, mean2, cov2)
    x = rng.multivariate_normal(mean1, cov1, 400_000)
    one, two = stats.multivariate_normal(mean1, cov1), stats.multivariate_normal(mean2, cov2)
    loss, drawn = pair.loss(), one.logpdf(x) - two.logpdf(x)
    assert abs(drawn.mean() - loss.mean()) < 6 * loss.std() / math.sqrt(len(x))
    hit = np.maximum(-np.expm1(0.5 - drawn), 0)
    assert abs(hit.mean() - pair.delta(0.5)) < 6 * hit.std() / math.sqrt(len(x))


def test_pickle_and_plot():
    pytest.importorskip("matplotlib").use("Agg")
    pair = GaussianPair.from_spectrum([0.3, -0.2], [1.0, 0.0], [1, 4])
    again = pickle.loads(pickle.dumps(pair))
    assert again.delta(0.7) == pair.delta(0.7) and repr(again) == repr(pair)
    ax = pair.plot()
    assert [line.get_label() for line in ax.lines] == ["P against Q", "Q against P"]
    assert ax.lines[0].get_ydata()[0] == pair.delta(0.0)


# ---- of any quadratic form ------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        QuadraticForm([0.3, -0.2, 0.1], [1, 2, 5], [0, 3, 1], 0.2, -0.3),
        QuadraticForm([300.0, 0.1], [3, 1]),
        QuadraticForm([-0.3, -0.2], [1, 2], offset=1.0),
        QuadraticForm([], normal_sd=2.0, offset=0.5),
        QuadraticForm(1 / np.arange(1, 200.0) ** 2, offset=-1.0),
    ],
)
def test_hockey_stick_is_the_integral_of_the_tail(form):
    """E (1 - e^(x - Q))+ = int_x^inf e^(x - q) P(Q > q) dq."""
    for x in (form.mean() - form.std(), form.mean(), form.mean() + 3 * form.std()):
        pieces = np.linspace(0, 40, 161)
        middle, half = 0.5 * (pieces[1:] + pieces[:-1]), 0.5 * np.diff(pieces)
        points, gauss = np.polynomial.legendre.leggauss(16)
        y = middle[:, None] + half[:, None] * points
        known = np.sum(half[:, None] * gauss * np.exp(-y) * form.sf(x + y))
        assert form.hockey_stick(x) == pytest.approx(known, rel=3e-6, abs=1e-17)
    many = np.linspace(form.mean() - form.std(), form.mean() + 3 * form.std(), 300)
    alone = [form.hockey_stick(float(x)) for x in many]
    np.testing.assert_allclose(form.hockey_stick(many), alone, rtol=1e-12, atol=1e-300)


def test_hockey_stick_of_a_loss_is_delta():
    pair = GaussianPair.from_spectrum([0.3, -0.2, 0.8], [1.0, 0.2, 0.0], [1, 4, 2])
    for epsilon in (0.1, 2.0, 30.0, 100.0):
        value = pair.loss().hockey_stick(epsilon)
        assert value == pytest.approx(pair.delta(epsilon), rel=1e-11)


def test_hockey_stick_outside_the_support_is_exact():
    positive = QuadraticForm([0.3, 0.2], [1, 2], [0.5, 0], offset=-0.1)
    known = 1 - math.exp(-2) * positive.mgf(-1.0)
    assert positive.hockey_stick(-2.0) == pytest.approx(known, rel=1e-14)
    negative = QuadraticForm([-0.3, -0.2], [1, 2], offset=0.4)
    assert negative.hockey_stick(0.4) == 0 and negative.hockey_stick(0.39) > 0
    wide = QuadraticForm(1 / np.arange(1, 2000.0))
    assert wide.hockey_stick(-0.5) == pytest.approx(1 - math.exp(-0.5) * wide.mgf(-1.0), rel=1e-13)
