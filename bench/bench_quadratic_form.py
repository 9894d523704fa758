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
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import measure
from ellipsum import QuadraticForm, backend

TABLE = Path(__file__).parents[1] / "tests" / "reference" / "quadratic_form_reference.npz"
REPEATS = 200


def best_time(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest call, by the wall."""
    return measure.best(call, repeats=repeats, clock=time.perf_counter)[0]


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
        parts = (form.weights, form.dof, form.noncentrality, 0.0)
        setup = best_time(lambda: type(form._table)(*parts), 5) / d  # noqa: B023
        print(
            f"{name:22} {kernel * 1e6:8.1f} {python * 1e6:8.1f} {vector * 1e6:13.1f} "
            f"{quantile * 1e6:9.1f} {evaluations:6d} {setup * 1e9:12.1f}"
        )


# ---- peers -------------------------------------------------------------------------------

OURS = ("davies", "imhof", "ruben", "saddlepoint", "moment")
MOMENTCHI2 = ("hbe", "sw", "wf", "lpb4")  # the last needs NumPy 1


class Score(NamedTuple):
    """One code's relative errors of the smaller tail, and seconds, over the cases."""

    name: str
    errors: np.ndarray
    seconds: np.ndarray


def peer_cases() -> list[tuple[np.ndarray, float, bool, float]]:
    """What every peer supports: positive weights, one degree of freedom, tails above 1e-12."""
    cases = []
    for form, q, upper, tail, _ in own_table(TABLE):
        plain = form.normal_sd == 0 and not form.noncentrality.any() and (form.dof == 1).all()
        if plain and (form.weights > 0).all() and form.weights.size >= 5 and tail > 1e-12:
            cases.append((form.weights, q, upper, tail))
    return cases[::12]


def score(name: str, sf: Callable[[np.ndarray, float], Any], repeats: int) -> Score | None:
    errors, seconds = [], []
    for weights, q, upper, tail in peer_cases():
        try:
            value = float(np.ravel(sf(weights, q))[0])
            seconds.append(best_time(lambda: sf(weights, q), repeats))  # noqa: B023
        except (ValueError, AttributeError):
            return None
        errors.append(abs((value if upper else 1 - value) / tail - 1))
    return Score(name, np.array(errors), np.array(seconds))


def scores() -> Iterator[Score]:
    """Each code that is there; ours without the set-up, as the others have none."""
    prepared = {case[1]: QuadraticForm(case[0]) for case in peer_cases()}

    def ours(_: np.ndarray, q: float) -> float:
        return float(prepared[q].sf(q))

    found: list[Score | None] = [score("ellipsum", ours, REPEATS)]
    # the smaller tail itself, where the interface allows to ask for it
    lower = np.array([prepared[q].cdf(q) for _, q, upper, _ in peer_cases() if not upper])
    true = np.array([tail for _, _, upper, tail in peer_cases() if not upper])
    assert found[0] is not None
    found[0].errors[[not case[2] for case in peer_cases()]] = np.abs(lower / true - 1)
    for method in OURS:
        found.append(
            score(f"our {method}", lambda w, q: prepared[q].sf(q, method=method), 1)  # noqa: B023
        )
    try:
        import momentchi2
    except ImportError:
        pass
    else:
        for name in MOMENTCHI2:
            call = getattr(momentchi2, name)
            found.append(score(f"momentchi2 {name}", lambda w, q: 1 - call(w, q), 5))  # noqa: B023
    if shutil.which("Rscript"):
        found.append(mgcv())
    return (each for each in found if each is not None)


def mgcv() -> Score | None:
    code = (
        "suppressMessages(library(mgcv)); x <- scan('stdin', quiet=TRUE); at <- 1;"
        "while (at < length(x)) { n <- x[at]; q <- x[at + 1]; w <- x[at + 1 + 1:n];"
        "t <- system.time(for (i in 1:50) p <- psum.chisq(q, w, tol=1e-12))[['elapsed']] / 50;"
        "cat(format(p, digits=17), t, fill=TRUE); at <- at + n + 2 }"
    )
    numbers = [v for w, q, *_ in peer_cases() for v in (w.size, q, *w)]
    try:
        out = subprocess.run(
            ["Rscript", "-e", code], input="\n".join(repr(float(v)) for v in numbers),
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    except (subprocess.CalledProcessError, OSError):
        return None
    rows = np.array([[float(v) for v in line.split()] for line in out.splitlines()])
    errors = [
        abs((sf if upper else 1 - sf) / tail - 1)
        for (_, _, upper, tail), sf in zip(peer_cases(), rows[:, 0], strict=True)
    ]
    return Score("mgcv psum.chisq", np.array(errors), rows[:, 1])


def compare() -> list[Score]:
    """Error and time of each code over the cases that all support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each of the others says where it is not right
        table = list(scores())
    print(f"\n{len(peer_cases())} cases, 5 to 30 weights, tails 1e-12 to 1/2; relative error of")
    print("the smaller tail against ball arithmetic, microseconds of one tail (median)")
    print(f"{'':18} {'median':>9} {'90 %':>9} {'worst':>9} {'time':>12}")
    for each in table:
        e = np.nan_to_num(each.errors, nan=np.inf)
        middle, most = np.quantile(e, [0.5, 0.9], method="higher")
        time = np.median(each.seconds) * 1e6
        print(f"{each.name:18} {middle:9.1e} {most:9.1e} {e.max():9.1e} {time:12.1f}")
    assert table[0].errors.max() <= 1e-12
    return table


def picture(out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.5))
    for each in compare():
        errors = np.clip(np.nan_to_num(each.errors, nan=1.0), 1e-16, 1.0)
        middle, most = np.quantile(errors, [0.5, 0.9], method="higher")
        time = np.median(each.seconds) * 1e6
        (line,) = axis.loglog([time, time], [middle, most], "-", lw=1)
        axis.loglog(time, middle, "o" if each.name == "ellipsum" else "x", color=line.get_color())
        below = each.name in ("momentchi2 hbe", "our moment")  # where labels would meet
        left = each.name in ("momentchi2 wf", "momentchi2 hbe")
        axis.annotate(
            each.name,
            (time, middle),
            (-6 if left else 6, -11 if below else -3),
            textcoords="offset points",
            ha="right" if left else "left",
            fontsize=8,
        )
    axis.set(
        xlabel="time of one tail, µs (median)",
        ylabel="relative error of the smaller tail",
        ylim=(5e-17, 2),
        title="Positive weights, tails from 1e-12 to ½: median (mark) to 90 % (line)",
    )
    axis.margins(x=0.2)
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
