"""Nearest neighbours: values that are tied, all of them, some, or none. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import norm

from ellipsum.tradeoff import audit, ksg_information
from ellipsum.tradeoff.neighbors import _within, knn_information


def information(table):
    """I of a joint table, nats."""
    apart = np.outer(table.sum(1), table.sum(0))
    live = table > 0
    return float((table[live] * np.log(table[live] / apart[live])).sum())


@pytest.mark.parametrize("seed", range(8))
def test_a_finite_table_has_the_information_of_its_law(seed):
    """Ross's estimate was 0 for every one, and KSG's above 8 nats."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(2, 5), rng.integers(2, 12)
    table = rng.dirichlet(np.full(np.prod(shape), 0.7)).reshape(shape)
    draws = rng.choice(table.size, 4000, p=table.ravel())
    label, value = np.divmod(draws, shape[1])
    frequencies = np.bincount(draws, minlength=table.size).reshape(shape) / 4000
    assert abs(knn_information(value[:, None], label) - information(table)) < 0.03
    assert abs(ksg_information(value, label) - information(table)) < 0.03
    # Tied at any place of the line, or of a plane, and in any order of the two.
    assert knn_information(rng.normal(size=(12, 2))[value], label) == pytest.approx(
        information(frequencies), abs=0.03
    )
    assert ksg_information(label, value) == pytest.approx(ksg_information(value, label))


@pytest.mark.parametrize("step", [0.003, 0.03, 0.3, 1.0, 2.0])
def test_rounded_numbers_have_the_information_of_the_rounded_law(step):
    """Ties at distance 0 alone left up to a quarter of a nat, where cells hold a few records."""
    grid = step * np.arange(-round(9 / step), round(9 / step) + 1)
    edges = np.append(grid - step / 2, grid[-1] + step / 2)
    truth = information(np.array([np.diff(norm.cdf(edges - mean)) / 2 for mean in (-1, 1)]))
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 2000)
    rounded = np.round((rng.normal(size=2000) + 2 * label - 1) / step) * step
    assert abs(knn_information(rounded[:, None], label) - truth) < 0.05
    assert abs(ksg_information(rounded, label) - truth) < 0.05
    twice = ksg_information(rounded, np.round(rng.normal(size=2000) / step) * step)
    assert abs(twice) < 0.06


def test_mixtures_of_atoms_and_a_density():
    """Gao et al.'s: X uniform on 5 letters and Y on [X, X + 2]; and a value that is often 0."""
    rng = np.random.default_rng(6)
    x = rng.integers(0, 5, 4000)
    truth = np.log(5) - 4 * np.log(2) / 5
    assert abs(ksg_information(x, x + 2 * rng.random(4000)) - truth) < 0.05
    label, kept = rng.integers(0, 2, 4000), rng.random(4000) < 0.5
    value = np.where(kept, label + 2 * rng.random(4000), 0.0)
    # Kept, it tells the label where the two intervals do not meet: half of the time.
    assert abs(knn_information(value[:, None], label) - 0.25 * np.log(2)) < 0.03


@pytest.mark.parametrize("seed", range(20))
def test_values_without_ties_are_counted_as_ross_does(seed):
    """Bit for bit, from all distances."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(20, 150), rng.integers(1, 4), rng.integers(1, 6)
    label = np.arange(n) % 2
    points = rng.normal(size=(n, d)) + label[:, None]
    scaled = points / points.std(0)
    apart = np.abs(scaled[:, None] - scaled).max(2)
    same = label[:, None] == label
    reach = np.sort(np.where(same, apart, np.inf), 1)[:, k]
    near = (apart < reach[:, None]).sum(1)
    wanted = digamma(n) + digamma(k)
    wanted -= digamma(same.sum(1)).mean() + digamma(near).mean()
    assert knn_information(points, label, k) == max(0.0, wanted)


def test_a_line_is_counted_as_a_plane_is():
    """By differences: x + reach is rounded, and had the k-th neighbour within or not by chance."""
    rng = np.random.default_rng(7)
    for step in (1e-9, 0.1, 0.3):
        line = np.round(rng.normal(size=300) / step) * step
        apart = np.abs(line[:, None] - line)
        reach = apart[np.arange(300), rng.integers(0, 300, 300)]
        for limit in (reach, np.nextafter(reach, 0), 0 * reach):
            wanted = (apart <= limit[:, None]).sum(1)
            assert (_within(line[:, None], limit) == wanted).all()
            assert (_within(np.c_[line, 0 * line], limit) == wanted).all()


def test_an_audit_of_a_release_of_few_values_says_what_it_tells():
    """Randomised response of a bit, kept in three of four cases: 0.13 nats, and 0 was said."""
    rng = np.random.default_rng(8)
    label = np.arange(3000) % 2
    told = np.where(rng.random(3000) < 0.75, label, 1 - label)
    found = audit(told[:, None], label, attackers="linear")
    truth = information(np.array([[3.0, 1.0], [1.0, 3.0]]) / 8)
    assert abs(found.knn_information - truth) < 0.02


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200, 1e300])
def test_information_is_the_same_in_any_unit(factor):
    """Columns whose squares leave the doubles counted as flat: 0 of them was told."""
    rng = np.random.default_rng(9)
    x, z = rng.normal(size=(2, 400))
    z += x
    wanted = ksg_information(x, z)
    assert wanted > 0.3
    assert ksg_information(factor * x, z) == pytest.approx(wanted, abs=1e-6)
    assert ksg_information(z, np.c_[factor * x]) == pytest.approx(wanted, abs=1e-6)
    told = knn_information(z, x > 0)
    assert told > 0.1
    assert knn_information(factor * z[:, None], x > 0) == pytest.approx(told, abs=1e-6)


@pytest.mark.parametrize(
    "given, kind, said",
    [
        (["Smith", "b"] * 3, TypeError, "must be numbers"),
        (np.ones((6, 0)), ValueError, "one column or more"),
        (np.ones((1, 6, 1)), ValueError, "one column or more"),
        (np.full(6, np.nan), ValueError, "finite"),
        (np.full(6, 1j), ValueError, "must be real"),
    ],
)
def test_what_is_no_column_is_refused_and_no_message_quotes_a_cell(given, kind, said):
    labels = np.arange(6) % 2
    for estimate in (
        lambda: ksg_information(given, np.ones(6)),
        lambda: ksg_information(np.ones(6), given),
        lambda: knn_information(given, labels),
    ):
        with pytest.raises(kind, match=said) as raised:
            estimate()
        assert "Smith" not in str(raised.value)
    for estimate in (
        lambda: ksg_information(np.ones(6), labels, 0),
        lambda: knn_information(np.ones(6), labels, 0),
    ):
        with pytest.raises(ValueError, match="neighbors must be at least 1"):
            estimate()
    with pytest.raises(ValueError, match="same rows"):
        ksg_information([], [])
