"""What a release tells, by quadrature: for tests and benches (no PyTorch here)."""

from __future__ import annotations

import numpy as np

from learned_settings import draw


def scalar_information(release, rho: float, draws: int = 4000, bins: int = 150) -> float:
    """I(X; Z) in nats by quadrature, for (X, Y) of correlation rho and Z released from Y.

    It sees whatever Z tells: the law of Z (in bins, which can only lose) is found for each y of a
    grid, and mixed over p(y | x). Sampling adds about 1e-3 at most.

    Parameters
    ----------
    release : function of rows y (n, 1) to rows z (n, 1), each with fresh noise
    """
    y, x = np.linspace(-5, 5, 201), np.linspace(-4.5, 4.5, 181)
    z = np.asarray(release(np.repeat(y, draws)[:, None]))[:, 0].reshape(len(y), draws)
    weight = np.exp(-(y**2) / 2)
    middle = np.average(z.mean(1), weights=weight)
    spread = np.sqrt(np.average(((z - middle) ** 2).mean(1), weights=weight))
    edges = middle + spread * np.linspace(-4, 4, bins - 1)
    place = np.searchsorted(edges, z)
    given_y = np.array([np.bincount(row, minlength=bins) for row in place]) / draws
    mixed = np.exp(-((y[None] - rho * x[:, None]) ** 2) / (2 * (1 - rho**2)))
    given_x = mixed / mixed.sum(1, keepdims=True) @ given_y
    of_x = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    apart = of_x @ given_x
    live = given_x > 0
    ratio = np.where(live, given_x, 1.0) / np.where(live, apart, 1.0)
    return float((of_x[:, None] * given_x * np.log(ratio)).sum())


def paired_information(
    release, observe: str, covariance: np.ndarray, k: int, draws: int = 10_000, points: int = 41
) -> float:
    """Sum over i of I(X_i; Z_i) in nats, by quadrature: for independent X_i at most I(X; Z).

    It sees whatever Z_i tells of X_i, Gaussian or not; not what goes across pairs. X_i is on a
    grid, all others are drawn given it, and Z_i is put in 60 bins (which can only lose), with
    Miller and Madow's correction.

    Parameters
    ----------
    release : function of rows w to rows z with as many columns as X, each with fresh noise
    """
    grid, bins, total = np.linspace(-4, 4, points), 60, 0.0
    weight = np.exp(-(grid**2) / 2)
    weight /= weight.sum()
    for i in range(k):
        turn = covariance[i] / covariance[i, i]
        seen = []
        for number, x in enumerate(grid * covariance[i, i] ** 0.5):
            rows = draw(covariance, draws, 1000 * (i + 1) + number)
            given = rows + np.outer(x - rows[:, i], turn)
            seen.append(np.asarray(release(given[:, k:] if observe == "useful" else given))[:, i])
        z = np.array(seen)
        middle = weight @ z.mean(1)
        spread = (weight @ ((z - middle) ** 2).mean(1)) ** 0.5
        if not spread > 1e-6:
            continue
        edges = middle + spread * np.linspace(-3.5, 3.5, bins - 1)
        place = np.searchsorted(edges, z)
        law = np.array([np.bincount(row, minlength=bins) for row in place]) / draws
        apart = weight @ law
        live = law > 0
        ratio = np.where(live, law, 1.0) / np.where(live, apart, 1.0)
        bias = (weight @ (live.sum(1) - 1)) / (2 * draws)
        total += float((weight[:, None] * law * np.log(ratio)).sum()) - bias
    return total
