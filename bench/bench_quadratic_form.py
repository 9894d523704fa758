"""Accuracy and speed of the generalized chi-square distribution, beside its peers.

    python bench/bench_quadratic_form.py accuracy [TABLE.npz | TABLE.json.gz]
    python bench/bench_quadratic_form.py speed
    python bench/bench_quadratic_form.py picture [OUT.png]

Peers: momentchi2 from PyPI and psum.chisq of R's mgcv, each where it is installed; chi2comb
needs a C library that PyPI does not bring; and our own ``davies``, ``imhof`` and ``ruben``.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ellipsum import QuadraticForm, backend

TABLE = Path(__file__).parents[1] / "tests" / "reference" / "quadratic_form_reference.npz"
REPEATS = 200


def best_time(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


# ---- accuracy ----------------------------------------------------------------------------


def own_table(path: Path) -> Iterator[tuple[QuadraticForm, float, bool, float, float]]:
    with np.load(path) as stored:
        t = dict(stored)
    ends = np.cumsum(t["size"])
    for i, end in enumerate(ends):
        s = slice(end - t["size"][i], end)
        form = QuadraticForm(t["weights"][s], t["dof"][s], t["noncentrality"][s], t["normal_sd"][i])
        yield form, float(t["q"][i]), bool(t["upper"][i]), float(t["tail"][i]), float(t["pdf"][i])


def json_table(path: Path) -> Iterator[tuple[QuadraticForm, float, bool, float, float]]:
    with gzip.open(path) as stored:
        table = json.load(stored)
    forms = {
        name: QuadraticForm(x["weights"], x["dof"], x["nonc"], x["normal_sd"], x["offset"])
        for name, x in table["distributions"].items()
    }
    for case in table["cases"]:
        small = case["small"]
        yield (
            forms[case["dist"]], float(case["q"]), small == "sf", float(case[small]),
            float(case["pdf"]),
        )  # fmt: skip


def accuracy(path: Path) -> None:
    read = own_table if path.suffix == ".npz" else json_table
    tails, densities, nodes, met, wrong = [], [], [], 0, 0
    for form, q, upper, tail, pdf in read(path):
        value = form.evaluate(q)
        error = abs((value.sf if upper else value.cdf) / tail - 1)
        tails.append(error)
        if np.isfinite(pdf) and pdf > 0:
            densities.append(abs(value.pdf / pdf - 1))
        nodes.append(value.nodes)
        met += value.met
        wrong += error > max(100 * value.error, 1e-11)
    e, d = np.array(tails), np.array(densities)
    print(f"{path.name}: {e.size} cases, backend {backend()}")
    print(
        f"  smaller tail: median {np.median(e):.1e}, max {e.max():.1e}, within 1e-12 "
        f"{100 * np.mean(e <= 1e-12):.2f} %, within 1e-10 {100 * np.mean(e <= 1e-10):.2f} %"
    )
    print(
        f"  density: median {np.median(d):.1e}, max {d.max():.1e}, within 1e-10 "
        f"{100 * np.mean(d <= 1e-10):.2f} %"
    )
    print(
        f"  nodes: median {np.median(nodes):.0f}, 99 % {np.quantile(nodes, 0.99):.0f}; error "
        f"estimate met {100 * met / e.size:.2f} %, wrong without a word {wrong}"
    )


# ---- speed -------------------------------------------------------------------------------


def distributions() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    rng = np.random.default_rng(1)
    for d in (10, 100, 1000, 100_000, 1_000_000):
        w = 1 / np.arange(1, d + 1.0)
        yield f"central, d={d}", {"weights": w}
        yield f"any dof, d={d}", {"weights": w, "dof": 0.5 + 3 * rng.random(d)}
        yield f"noncentral, d={d}", {"weights": w, "noncentrality": rng.random(d)}


def speed() -> None:
    print(f"one thread, backend {backend()}; microseconds, best of {REPEATS}")
    print(
        f"{'':22} {'kernel':>8} {'python':>8} {'1000 q, each':>13} {'quantile':>9} "
        f"{'evals':>6} {'set-up ns/w':>12}"
    )
    for name, parameters in distributions():
        form = QuadraticForm(**parameters)
        q = float(form.isf(1e-6))
        many = np.linspace(form.mean(), q, 1000)
        out = np.empty((1000, 6))
        kernel = best_time(lambda: form._table.tail(q - 0.0))  # noqa: B023
        python = best_time(lambda: form.sf(q))  # noqa: B023
        vector = best_time(lambda: form._table.tails(many, out), 3) / 1000  # noqa: B023
        quantile = best_time(lambda: form.isf(1e-6), 50)  # noqa: B023
        evaluations = form._table.quantile(np.log(1e-6), True)[2]
        d = parameters["weights"].size
        parts = (form._weights, form._dof, form._noncentrality, 0.0)
        setup = best_time(lambda: type(form._table)(*parts), 5) / d  # noqa: B023
        print(
            f"{name:22} {kernel * 1e6:8.1f} {python * 1e6:8.1f} {vector * 1e6:13.1f} "
            f"{quantile * 1e6:9.1f} {evaluations:6d} {setup * 1e9:12.1f}"
        )


# ---- peers -------------------------------------------------------------------------------


def peers(weights: np.ndarray, q: float) -> Iterator[tuple[str, float, float]]:
    """(name, sf, seconds) of each code that is there."""
    form = QuadraticForm(weights)
    yield "ellipsum", form.sf(q), best_time(lambda: form.sf(q))
    for method in ("davies", "imhof", "ruben", "saddlepoint", "moment"):
        sf = float(form.sf(q, method=method))
        yield method, sf, best_time(lambda: form.sf(q, method=method), 1)  # noqa: B023
    try:
        import momentchi2
    except ImportError:
        pass
    else:
        for name in ("hbe", "lpb4", "sw", "wf"):
            call = getattr(momentchi2, name)
            try:
                sf = 1 - float(np.ravel(call(weights, q))[0])
            except (ValueError, AttributeError):  # some of its methods need NumPy 1
                continue
            yield f"momentchi2 {name}", sf, best_time(lambda: call(weights, q), 5)  # noqa: B023
    if shutil.which("Rscript"):
        yield from mgcv(weights, q)


def mgcv(weights: np.ndarray, q: float) -> Iterator[tuple[str, float, float]]:
    code = (
        "suppressMessages(library(mgcv)); w <- scan('stdin', quiet=TRUE); q <- w[1]; w <- w[-1];"
        "t <- system.time(for (i in 1:50) p <- psum.chisq(q, w, tol=1e-12));"
        "cat(format(p, digits=17), t[['elapsed']] / 50)"
    )
    text = "\n".join(repr(float(v)) for v in [q, *weights])
    try:
        out = subprocess.run(
            ["Rscript", "-e", code], input=text, capture_output=True, text=True, check=True
        ).stdout.split()
    except (subprocess.CalledProcessError, OSError):
        return
    yield "mgcv psum.chisq", float(out[0]), float(out[1])


def compare() -> list[tuple[str, float, float]]:
    """Error and time of each code at d = 1000, w = 1/i, sf = 1e-6."""
    weights = 1 / np.arange(1, 1001.0)
    form = QuadraticForm(weights)
    q = float(f"{form.isf(1e-6):.9g}")
    true = form.sf(q)  # its error is measured by `accuracy`
    rows = [(name, abs(sf / true - 1), seconds) for name, sf, seconds in peers(weights, q)]
    print("d = 1000, w = 1/i, sf = 1e-6: relative error (ours as reference), microseconds")
    for name, error, seconds in rows:
        print(f"{name:18} {error:10.1e} {seconds * 1e6:12.1f}")
    assert rows[0][1] <= 1e-12
    return rows


def picture(out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4))
    for name, error, seconds in compare():
        axis.loglog(seconds * 1e6, max(error, 1e-15), "o" if name == "ellipsum" else "x")
        axis.annotate(name, (seconds * 1e6, max(error, 1e-15)), fontsize=8)
    axis.set(
        xlabel="time of one tail, µs",
        ylabel="relative error of the tail",
        title="1,000 weights 1/i, tail 1e-6",
    )
    figure.tight_layout()
    figure.savefig(out, dpi=150)


def main(arguments: list[str]) -> None:
    what = arguments[0] if arguments else "speed"
    if what == "accuracy":
        accuracy(Path(arguments[1]) if len(arguments) > 1 else TABLE)
    elif what == "speed":
        speed()
        compare()
    elif what == "picture":
        picture(Path(arguments[1] if len(arguments) > 1 else "quadratic_form.png"))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
