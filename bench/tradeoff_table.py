"""Seconds of the exact tradeoffs, and what linear erasure hides on digits.

python bench/tradeoff_table.py            both tables
python bench/tradeoff_table.py speed      the first: seconds (of this process), certified gap
python bench/tradeoff_table.py erasure    the second: accuracy of four attackers
"""

from __future__ import annotations

import sys
import time

import numpy as np

from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff, LinearEraser, OracleShift, audit
from measure import machine


def covariance(d: int, seed: int = 1) -> np.ndarray:
    """A random covariance of d coordinates, its condition number about d^2."""
    draws = np.random.default_rng(seed).normal(size=(d, d + 2))
    return draws @ draws.T


def timed(job):
    """The job's result and its CPU seconds."""
    start = time.process_time()
    result = job()
    return result, time.process_time() - start


def gaussian_speed() -> None:
    print("Gaussian: d coordinates observed, distortion a share of the variance of Y")
    print("    d  observe   share  leakage      gap   CPU s")
    for d in (10, 40, 100, 200):
        for observe in ("useful", "full"):
            k = d if observe == "useful" else d // 2
            joint = covariance(k + (d if observe == "useful" else d - k))
            for share in (0.1, 0.5):
                budget = share * np.trace(joint[k:, k:])
                solver = GaussianTradeoff(observe, distortion=budget)
                found, seconds = timed(lambda s=solver, j=joint, k=k: s.from_covariance(j, k))
                print(
                    f"{d:5}  {observe:7}  {share:5}  {found.leakage_:7.4f}  {found.gap_:7.1e}"
                    f"  {seconds:6.2f}"
                )


def random_laws(letters: tuple[int, int], count: int):
    """Joint law, cost, and a price and a distortion to solve it at."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        x, w, z = rng.integers(*letters, 3)
        joint = rng.dirichlet(np.full(x * w, 0.6)).reshape(x, w)
        cost, price = rng.uniform(size=(w, z)).round(3), float(np.exp(rng.uniform(-2, 3)))
        least, most = joint.sum(0) @ cost.min(1), (joint.sum(0) @ cost).min()
        yield joint, cost, price, least + (most - least) * rng.uniform(0.02, 0.98)


def discrete_speed() -> None:
    print("discrete: random laws, by price and by distortion; the symmetric pair of 10 letters")
    for letters, count in (((2, 8), 200), ((10, 11), 20)):
        for name in ("multiplier", "distortion"):
            seconds, gaps = [], []
            for joint, cost, price, budget in random_laws(letters, count):
                limit = {"multiplier": price} if name == "multiplier" else {"distortion": budget}
                found, taken = timed(
                    lambda j=joint, c=cost, o=limit: DiscreteTradeoff(**o).fit(j, c)
                )
                seconds.append(taken)
                gaps.append(found.gap_)
            mean, slowest = np.mean(seconds), max(seconds)
            print(
                f"    {letters[0]:2} to {letters[1] - 1:2} letters, {name}: {count} laws, "
                f"mean {mean:.3f} s, slowest {slowest:.3f} s, largest gap {max(gaps):.1e}"
            )
    pair = np.full((10, 10), 0.4 / 90)
    np.fill_diagonal(pair, 0.06)
    for observe in ("useful", "full"):
        solver = DiscreteTradeoff(distortion=0.3)
        found, seconds = timed(lambda s=solver, o=observe: s.fit_joint(pair, 1 - np.eye(10), o))
        print(f"    {observe:7}  {seconds:.3f} s, gap {found.gap_:.1e}")


def erasure() -> None:
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    images, digit = load_digits(return_X_y=True)
    latents, private = PCA(10, svd_solver="full").fit_transform(images), digit >= 5
    print("digits, ten principal components; label: 5 or more; accuracy (standard error)")
    releases = {
        "raw": lambda rows: rows,
        "LEACE": LinearEraser().fit(latents, private),
        "oracle shift": OracleShift().fit(latents, private),
    }
    for name, release in releases.items():
        found = audit(release, private, latents)
        cells = [f"{r.attacker} {r.accuracy:.3f} ({r.accuracy_se:.3f})" for r in found.results]
        print(f"    {name:13}", "  ".join(cells))


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["speed", "erasure"]
    print(machine())
    if "speed" in wanted:
        gaussian_speed()
        discrete_speed()
    if "erasure" in wanted:
        erasure()
