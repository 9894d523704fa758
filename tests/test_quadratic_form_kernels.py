"""Both backends and every instruction set give the same distribution; clusters change nothing."""

import numpy as np
import pytest

from ellipsum.kernels import backend as _backend
from ellipsum.kernels import twins
from regions import KERNEL_SETS

pytestmark = pytest.mark.usefixtures("compiled_twins")


def table(module, weights, dof=1.0, noncentrality=0.0, normal_sd=0.0):
    weights = np.asarray(weights, dtype=np.float64)
    full = [np.broadcast_to(v, weights.shape).astype(np.float64) for v in (dof, noncentrality)]
    return module.FormTable(weights, *full, normal_sd)


def drawn(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 40))
    weights = 10.0 ** rng.uniform(-3, 0, d) * rng.choice([-1, 1, 1], d)
    noncentrality = np.where(rng.random(d) < 0.3, 10.0 ** rng.uniform(-2, 3, d), 0)
    dof = rng.choice([0.5, 1.0, 1.0, 3.7, 50.0], d)
    return weights, dof, noncentrality, float(rng.choice([0, 0.2]))


@pytest.fixture(params=KERNEL_SETS)
def kernels(request):
    """The module in use, on each instruction set that this machine runs."""
    with _backend.use_kernels(request.param) as module:
        yield module


@pytest.mark.parametrize("seed", range(12))
def test_twin_and_targets_agree(kernels, seed):
    parameters = drawn(seed)
    mine, twin = table(kernels, *parameters), table(twins, *parameters)
    for log_tail in (-1.0, -20.0, -600.0):
        for upper in (True, False):
            q, _, _ = mine.quantile(log_tail, upper)
            if q == 0:
                continue
            here, there = mine.tail(q), twin.tail(q)
            assert here[4] == there[4]
            np.testing.assert_allclose(here[:2], there[:2], rtol=1e-13, atol=1e-12)
            again, _, _ = twin.quantile(log_tail, upper)
            assert again == pytest.approx(q, rel=1e-10, abs=1e-300)


def test_moments_and_contour_of_the_twin_agree(kernels):
    parameters = ([1.0, 0.5, 0.1], [1.0, 2.0, 3.5], [0.0, 1.0, 20.0], 0.0)
    mine, twin = table(kernels, *parameters), table(twins, *parameters)
    for which in range(4):
        for q in (0.3, 5.0, 90.0):
            here, there = mine.moment(q, True, which), twin.moment(q, True, which)
            assert here[0] == pytest.approx(there[0], rel=1e-12)
    for q in (2.0, 30.0):
        (t, weight), (u, other) = mine.contour(q), twin.contour(q)
        assert np.sum(weight.real) == pytest.approx(np.exp(mine.tail(q)[1]), rel=1e-12)
        assert np.sum((weight / (1 - t)).real) == pytest.approx(
            np.sum((other / (1 - u)).real), rel=1e-11
        )


CLUSTERED = {
    "power law": (np.arange(1, 3001.0) ** -1, 1.0, 0.0),
    "near equal": (1 + 0.04 * np.sin(np.arange(900.0)), 1.0, 0.0),
    "equal": (np.full(5000, 0.3), 1.0, 0.5),
    "any dof": (np.arange(1, 2001.0) ** -0.5, 0.5 + np.arange(2000.0) % 7, 0.0),
    "noncentral": (np.arange(1, 1501.0) ** -1, 1.0, (np.arange(1500.0) % 3) / 2),
    "heavy": (np.append(np.geomspace(0.1, 0.105, 100), 1.0), 1e6, 0.0),
    "mixed sign": (np.arange(1, 1501.0) ** -0.7 * np.where(np.arange(1500) % 2, 1, -1), 2.0, 0.1),
}


@pytest.mark.parametrize("name", CLUSTERED)
@pytest.mark.parametrize("log_tail", [-0.7, -14.0, -690.0])
@pytest.mark.parametrize("upper", [True, False])
def test_clusters_change_nothing(kernels, name, log_tail, upper):
    """The twin evaluates every weight; near the branch point the C++ must fall back to that."""
    mine, twin = table(kernels, *CLUSTERED[name]), table(twins, *CLUSTERED[name])
    q, _, _ = mine.quantile(log_tail, upper)
    here, there = mine.tail(q), twin.tail(q)
    assert here[4] == there[4]
    np.testing.assert_allclose(here[:2], there[:2], rtol=1e-13, atol=2e-12)


@pytest.mark.parametrize("t", [0.1, 0.3, 0.45])
def test_a_heavy_cluster_does_not_mislead_the_saddlepoint(kernels, t):
    """Half the extreme weight, 1e10 degrees of freedom: to one standard deviation is near."""
    weights, dof = np.append(np.linspace(0.44, 0.46, 100), 1.0), np.append(np.full(100, 1e8), 1.0)
    q = float(np.sum(dof * weights / (1 - 2 * weights * t)))  # K'(t)
    here, there = (table(m, weights, dof).tail(q) for m in (kernels, twins))
    assert here[4] and here[0] == pytest.approx(there[0], rel=1e-14)
    assert max(here[2:4]) < 1e-9


def test_density_at_the_edge_of_many_weights(kernels):
    """q = 0 with two degrees of freedom: sum k/2 log w from moments, for weights not kept."""
    parameters = (np.append(np.geomspace(0.1, 0.4, 1023), 1.0), 2.0**-9)
    mine, twin = table(kernels, *parameters).tail(0.0), table(twins, *parameters).tail(0.0)
    assert mine[1] == pytest.approx(twin[1], rel=1e-14)


@pytest.mark.slow
def test_ten_million_weights(kernels):
    """Half of them equal, so that the sum of two is known: chi-squares of 1e7/2 degrees each."""
    d = 10_000_000
    weights = np.full(d, 1.0)
    form = table(kernels, weights)
    from scipy import special

    q = d + 5 * np.sqrt(2.0 * d)
    assert np.exp(form.tail(q)[0]) == pytest.approx(special.chdtrc(float(d), q), rel=1e-9)
