"""The main job on a real table: scikit-learn's breast-cancer data, half of it public.

The first half of the rows counts as published and sets the shape; the second is private, and
its mean is released. The halves differ (49 % of the first are benign, 76 % of the second), so
the public mean is no substitute for the private one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ellipsoid import Ellipsoid
from ..plot import check_matplotlib
from ..private_sum import PrivateMean
from ..release import titled
from ..sum_release import SumRelease
from .demo_plot import Demo, save_demo

__all__ = ["Demo", "make_demo", "run_demo"]

Array = NDArray[np.float64]

#: With 285 rows the noise is the larger error by far, so the clip may take one row in ten:
#: near 4 sigma_opt sqrt(d_eff) / n, the rule of thumb for the best share.
CLIP_PROBABILITY = 0.1

_REGIONS = {
    "ball": "a ball",
    "scaled": "scaled by column",
    "scaled and turned": "scaled and turned (this one)",
}


def make_demo(*, epsilon: float = 1.0, delta: float = 1e-6, seed: int | None = None) -> Demo:
    """Release the private half's mean, with the shape that the public half gives.

    Parameters
    ----------
    epsilon, delta : float
        The budget, for neighbours that differ by the replacement of one row.
    seed : int, optional
        For tests: the release is then not private, and says so.

    Raises
    ------
    ImportError
        scikit-learn is missing.
    """
    table, names = _load()
    public, private = np.array_split(table, 2)
    center, sigma = public.mean(axis=0), public.std(axis=0, ddof=1)
    rows = (private - center) / sigma
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    turned = Ellipsoid.for_covariance(
        np.corrcoef(public, rowvar=False), clip_probability=CLIP_PROBABILITY
    )
    release = PrivateMean(turned, **budget)(rows, seed=seed)
    scaled = Ellipsoid.for_gaussian(np.ones(len(names)), clip_probability=CLIP_PROBABILITY)
    lengths = np.linalg.norm(public - center, axis=1)
    ball = Ellipsoid.ball(float(np.quantile(lengths, 1 - CLIP_PROBABILITY)), d=len(names))
    noise = {
        "ball": _noise_sd(ball, len(rows), budget) / sigma,
        "scaled": _noise_sd(scaled, len(rows), budget),
        "scaled and turned": release.sd,
    }
    assert isinstance(release, SumRelease)  # made over a region
    return Demo(names, center, sigma, private.mean(axis=0), release, noise)


def run_demo(
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    picture: str | None = None,
    seed: int | None = None,
) -> int:
    """Print the table, and write the picture if its path is given; return an exit code."""
    if picture is not None:
        check_matplotlib()  # before anything is spent
    demo = make_demo(epsilon=epsilon, delta=delta, seed=seed)
    print("\n".join(report(demo)))
    if picture is not None:
        save_demo(demo, picture)
        print(f"\npicture: {picture}")
    return 0


def report(demo: Demo) -> list[str]:
    """Lines of the table for a person."""
    release = demo.release
    what = f"mean of {release.n} rows, {len(demo.names)} features"
    lines = [
        f"breast-cancer table: {titled(what, private=release.private)}",
        f"guarantee: {release.guarantee}",
        *(f"CAVEAT: {caveat}" for caveat in release.caveats),
        "",
        f"{'feature':24} {'non-private':>12} {'private':>12} {'noise sd':>10} {'error / sd':>11}",
    ]
    for j, name in enumerate(demo.names):
        error = (demo.value[j] - demo.truth[j]) / demo.sd[j]
        lines.append(
            f"{name:24} {demo.truth[j]:>12.5g} {demo.value[j]:>12.5g} {demo.sd[j]:>10.2g} "
            f"{error:>+11.2f}"
        )
    return [*lines, "", *_summary(demo)]


def _summary(demo: Demo) -> list[str]:
    error = _rms((demo.value - demo.truth) / demo.sigma)
    public = _rms((demo.center - demo.truth) / demo.sigma)
    lines = [
        "root mean square over the features, in public standard deviations:",
        f"  error of the private mean                        {error:9.3f}",
        f"  error of the public half's mean                  {public:9.3f}",
    ]
    for shape, noise in demo.noise.items():
        lines.append(f"  noise, clip region {_REGIONS[shape]:30}{_rms(noise):9.3f}")
    return lines


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _noise_sd(region: Ellipsoid, n: int, budget: dict[str, Any]) -> Array:
    """Noise of the mean of n rows over a region, which depends on nothing but n."""
    return PrivateMean(region, **budget).noise_sd(n)


def _load() -> tuple[Array, list[str]]:
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise ImportError("the demo needs scikit-learn: pip install scikit-learn") from None
    data: Any = load_breast_cancer()
    return np.asarray(data.data, np.float64), [str(name) for name in data.feature_names]
