"""The bits that a change of shape must not change: integers, noise, bytes, releases and forms.

    python tests/reference/released_bits.py            print what the code gives now
    python tests/reference/released_bits.py --write    keep it; the commit says why

Integers, noise, bytes and releases over given regions are equal on every machine and backend;
what mathematical libraries have a part in, to a few units of the last digit.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ellipsum import (
    Ellipsoid,
    ExactSum,
    PrivateMean,
    PrivateSum,
    QuadraticForm,
    calibrate,
    estimate_center,
    estimate_covariance,
    estimate_scale,
    noise,
)
from ellipsum.noise_keys import JobKeys, Use
from ellipsum.sum_release import SumRelease

FILE = Path(__file__).with_suffix(".json")
SEED = 20261121


def digest(data: Any) -> str:
    raw = data if isinstance(data, bytes) else repr(data).encode()
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def rows_of(d: int, n: int = 700) -> np.ndarray:
    """Heavy tails, huge and tiny numbers, NaN and infinities."""
    rng = np.random.default_rng(d)
    rows = 2.0 * rng.standard_t(2, size=(n, d))
    odd = [1e300, -1e308, 1e-300, 5e-324, np.nan, np.inf, -np.inf, 0.0, -0.0]
    rows[rng.integers(0, n, 40), rng.integers(0, d, 40)] = rng.choice(odd, 40)
    return rows


def regions(d: int) -> dict[str, Ellipsoid]:
    rng = np.random.default_rng(1000 + d)
    center, sigma = rng.normal(size=d), rng.uniform(0.1, 5, d)
    root = rng.normal(size=(d, d)) / np.sqrt(d) + 2 * np.eye(d)
    return {
        "ball": Ellipsoid.ball(2.1 * np.sqrt(d), center),
        "box": Ellipsoid.box(center - sigma, center + 2 * sigma),
        "ellipsoid": Ellipsoid(center, 1 / sigma, 3.3 * np.sqrt(d)),
        "matrix": Ellipsoid(center, root, 4.4 * np.sqrt(d)),
    }


def radii() -> dict[str, str]:
    """Clip radii that come from quadratic forms, in hexadecimal."""
    out = {}
    for d in (1, 3, 16, 64):
        rng = np.random.default_rng(2000 + d)
        sigma, root = rng.uniform(0.1, 5, d), rng.normal(size=(d, d)) / np.sqrt(d) + 2 * np.eye(d)
        known = {"n": 700, "epsilon": 1.0, "delta": 1e-6}
        for name, region in {
            "gaussian": Ellipsoid.for_gaussian(sigma, clip_probability=0.01),
            "covariance": Ellipsoid.for_covariance(root @ root.T, clip_probability=0.01),
            "best": Ellipsoid.for_gaussian(sigma, **known),
            "best covariance": Ellipsoid.for_covariance(root @ root.T, **known),
        }.items():
            out[f"{name} {d}"] = float(region.clip_norm).hex()
    return out


def sums() -> dict[str, str]:
    out = {}
    for d in (1, 2, 3, 8, 13, 16, 64, 130):
        for name, region in regions(d).items():
            for dtype in ("float64", "float32"):
                with np.errstate(over="ignore"):
                    rows = rows_of(d).astype(dtype)
                total = ExactSum(region).add(rows)
                out[f"{name} {d} {dtype}"] = digest(total.to_bytes())
    return out


def draws() -> dict[str, str]:
    key = bytes(range(32))
    out = {
        f"sigma {sigma}": digest(noise.rounded_gaussian(5000, sigma, key=key).tobytes())
        for sigma in (0.3, 1.0, 1234.5, 2.0**26, 2.0**45, 2.0**58)
    }
    out["doubles"] = digest(noise.gaussian((500, 3), [1.0, 2.5, 1e-9], key=key).tobytes())
    out["key stream"] = digest(noise.keystream(999, key=key, nonce=7).tobytes())
    return out


def levels() -> dict[str, str]:
    out = {}
    for epsilon in (0.1, 1.0, 10.0):
        for delta in (1e-12, 1e-6, 1e-2):
            out[f"{epsilon} {delta}"] = calibrate.noise_multiplier(epsilon, delta).hex()
    return out


def given_releases() -> Iterator[tuple[str, bool, SumRelease]]:
    """Name, whether a matrix turns it back into data units, and the release itself."""
    for neighbors in ("replace", "add-remove"):
        for d in (1, 3, 20):
            rows = np.random.default_rng(d).normal(2, 3, size=(900, d))
            for name, region in regions(d).items():
                for mechanism in (PrivateSum, PrivateMean):
                    release = mechanism(region, mu=0.7, neighbors=neighbors)(rows, seed=SEED)
                    named = f"{mechanism.__name__} {name} {d} {neighbors}"
                    yield named, name == "matrix", release


def releases() -> dict[str, str]:
    """Over given regions: functions of IEEE arithmetic and the key stream alone.

    Of a matrix the integers: LAPACK, which solves for the value, rounds as the processor has it.
    """
    out = {}
    for name, matrix, release in given_releases():
        plain = [] if matrix else [release.value.tolist()]
        out[name] = digest([release.integers.tolist(), *plain])
    return out


def solved() -> dict[str, list[str]]:
    """Values of releases over a matrix, and noise of all (hypot has another last bit on ARM):
    doubles in hexadecimal."""
    return {
        name: [float(v).hex() for v in (*(release.value if matrix else ()), *release.sd)]
        for name, matrix, release in given_releases()
    }


def same_noise(self: JobKeys, use: Use, *draw: Any) -> bytes:
    """In place of `JobKeys.of`: bound to no region, whose last bit libraries decide."""
    return hashlib.blake2b(repr((use, draw)).encode(), digest_size=32).digest()


def plans() -> dict[str, list[str]]:
    """Plans and estimates, doubles in hexadecimal: their radii come from exp and log."""
    out = {}
    bound, JobKeys.of = JobKeys.of, same_noise
    try:
        for neighbors in ("replace", "add-remove"):
            budget = {"epsilon": 1.0, "delta": 1e-6, "neighbors": neighbors, "seed": SEED}
            for d in (1, 3, 20):
                rows = np.random.default_rng(d).normal(2, 3, size=(900, d))
                box = {"lower": np.full(d, -50.0), "upper": np.full(d, 60.0)}
                ball = {"center": np.full(d, 2.0), "radius": 4.0 * np.sqrt(d)}
                found = {
                    "center": estimate_center(rows, **box, **budget),
                    "scale": estimate_scale(rows, **box, **budget),
                    "gaussian": estimate_covariance(rows, **ball, **budget),
                    "wishart": estimate_covariance(rows, **ball, **budget, method="wishart"),
                }
                for name, release in found.items():
                    values = [float(v).hex() for v in release.value.ravel()[:40]]
                    out[f"{name} {d} {neighbors}"] = values
    finally:
        JobKeys.of = bound
    return out


def forms() -> dict[str, list[str]]:
    """Doubles in hexadecimal: the comparison of a day can be of bits."""
    cases = {
        "one": QuadraticForm([2.0]),
        "two": QuadraticForm([3.0, 1.0]),
        "mixed": QuadraticForm([3, 1, -0.5], dof=[1, 4, 2.5], noncentrality=[0, 2, 1]),
        "normal": QuadraticForm([1, 0.2], normal_sd=0.7, offset=-1),
        "few": QuadraticForm([1, 0.5], dof=[0.3, 0.01]),
        "many": QuadraticForm(1 / np.arange(1, 200.0) ** 2),
        "distinct": QuadraticForm(np.linspace(0.1, 3, 40), dof=np.linspace(0.5, 9, 40)),
    }
    out = {}
    for name, form in cases.items():
        q = form.mean() + np.array([-3, -1, -0.1, 0.0, 0.5, 2, 9, 40]) * form.std()
        p = np.array([1e-200, 1e-12, 0.01, 0.5, 0.99])
        values = [form.sf(q), form.cdf(q), form.pdf(q), form.isf(p), form.ppf(p)]
        out[name] = [float(v).hex() for part in values for v in np.ravel(part)]
    return out


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "sums": sums,
    "noise": draws,
    "levels": levels,
    "releases": releases,
    "solved": solved,
    "plans": plans,
    "radii": radii,
    "forms": forms,
}


def main() -> None:
    found = {name: part() for name, part in PARTS.items()}
    text = json.dumps(found, indent=0, sort_keys=True) + "\n"
    if "--write" in sys.argv:
        FILE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
