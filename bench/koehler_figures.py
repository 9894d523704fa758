"""Figures 5.1 to 5.3 and 6.1 to 6.3 of Koehler (2018): as printed, and corrected, side by side.

    python bench/koehler_figures.py [--only 6_3]

writes ``koehler_5_1.png`` to ``koehler_6_3.png`` and ``koehler_figures.json`` (some of the numbers)
in ``bench/results``; figures 6.4 to 6.11 are ``koehler_records.py``'s. Dashed: the thesis' formula.
Solid: what is exact. Its R, which the text does not give, is 3 standard deviations here. What each
figure shows, and what is wrong:

* 5.1 error of the sufficient condition of Theorem 5.4.1: right, the axis nu being eta;
* 5.2 bits against epsilon: 4^bits, not e^bits, and mu = 2 (R/sigma) sqrt(SNR);
* 5.3 "the lower bound on nu" explodes where a component is about to be dropped: nothing does;
* 6.1, 6.2 (5.6) and (5.11) beside the Gaussian mechanism: neither bounds the exact epsilon. At
  equal SNR the three columns of 6.2 coincide (beta |P|^2 = 1 + SNR at every correlation);
* 6.3 accuracy of sign(x): the four curves coincide.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import matplotlib
import numpy as np
from scipy.special import ndtri

from ellipsum import calibrate
from ellipsum.records import Bottleneck, RateDistortion
from ellipsum.records import printed_bounds as printed

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
DELTAS = (1e-4, 1e-5, 1e-6)
DELTA, RADIUS = 1e-5, 3.0
CORRELATIONS = (0.1, 0.5, 0.9)
ONE = np.eye(1)


def exact(mu: float, delta: float = DELTA) -> float:
    return calibrate.epsilon(1 / mu, delta)


def sufficient(eta: float, delta: float) -> float:
    """The right-hand side of (5.13)."""
    return -float(ndtri(delta)) * math.sqrt(2 * eta) + eta


def figure_5_1() -> tuple[plt.Figure, dict]:
    figure, axes = plt.subplots(3, 3, figsize=(10, 8), sharex="col")
    eta, table = np.geomspace(1e-2, 1e6, 60), {}
    for row, delta in zip(axes, DELTAS, strict=True):
        bound = np.array([sufficient(e, delta) for e in eta])
        least = np.array([exact(math.sqrt(2 * e), delta) for e in eta])
        row[0].loglog(eta, bound, "--", label="(5.13)")
        row[0].loglog(eta, least, label="exact")
        row[1].semilogx(eta, bound - least)
        row[1].axhline(1, color="0.6", lw=0.8)
        row[2].loglog(eta, bound / least - 1)
        row[0].set_ylabel(f"delta = {delta:g}\nepsilon")
        row[0].legend(fontsize=8)
        at = (0.01, 1.0, 100.0, 1e6)
        table[f"{delta:g}"] = [sufficient(e, delta) - exact(math.sqrt(2 * e), delta) for e in at]
    titles = ("epsilon", "absolute error (tends to 1)", "relative error")
    for ax, title, low in zip(axes[0], titles, axes[2], strict=True):
        ax.set_title(title)
        low.set_xlabel("eta (printed: nu)")
    return figure, table


def figure_5_2() -> tuple[plt.Figure, dict]:
    figure, ax = plt.subplots(figsize=(6, 4))
    bits, table = np.linspace(0.01, 4, 80), {}
    for delta, colour in zip(DELTAS, ("C0", "C1", "C2"), strict=True):
        snr = 4**bits - 1
        as_printed = [printed.snr_epsilon_5_15(x, delta) for x in snr]
        right = [exact(2 * RADIUS * math.sqrt(x), delta) for x in snr]
        ax.semilogy(bits, as_printed, "--", color=colour, label=f"(5.15), delta = {delta:g}")
        ax.semilogy(bits, right, color=colour, label="exact, R = 3 sigma")
        table[f"{delta:g}"] = {"(5.15) at 1 bit": as_printed[20], "exact": right[20]}
    ax.set(xlabel="bits kept, log2(1 + SNR)/2", ylabel="epsilon", title="Figure 5.2")
    ax.legend(fontsize=7)
    return figure, table


def figure_5_3() -> tuple[plt.Figure, dict]:
    """eta against gamma = s_min/s_max, R^2 = s_max; left s_min beta is fixed, right s_max beta.

    The exact eta is 2 (s_max beta - 1). Left it grows because s_max beta does, right not at all;
    (5.37) explodes where the weakest component is about to be dropped.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    table = {}
    for snr, colour in zip((0.1, 1.0, 10.0), ("C0", "C1", "C2"), strict=True):
        gamma = np.geomspace(1e-4, 1, 80)
        bound = [printed.eta_5_38(g, 1 + snr) for g in gamma]
        left.loglog(gamma, bound, "--", color=colour, label=f"(5.38), weakest SNR {snr:g}")
        left.loglog(gamma, 2 * ((1 + snr) / gamma - 1), color=colour, label="exact")
        gamma = np.geomspace(1.0001 / (1 + snr), 1, 200)  # below, the component is not kept
        bound = [snr * printed.alpha_5_37(g, g * (1 + snr)) for g in gamma]
        right.loglog(gamma, bound, "--", color=colour, label=f"(5.37), strongest SNR {snr:g}")
        right.axhline(2 * snr, color=colour, label="exact, for every gamma")
        table[f"{snr:g}"] = {"(5.37) at the smallest gamma": bound[0], "exact": 2 * snr}
    for ax in (left, right):
        ax.set_xlabel("gamma = s_min/s_max")
        ax.legend(fontsize=7)
    left.set(ylabel="eta (printed: nu)", title="Figure 5.3, s_min beta fixed", ylim=(1e-2, 1e6))
    right.set_title("the same, s_max beta fixed")
    return figure, table


def _compared(panel, ratio, snr, bound, sufficient_bound, right, name) -> None:
    panel.loglog(snr, bound, "--", label=name)
    panel.loglog(snr, sufficient_bound, ":", label="(5.13) as printed")
    panel.loglog(snr, right, label="exact")
    panel.legend(fontsize=7)
    ratio.semilogx(snr, np.log(bound / right), "--", label=f"log {name}/exact")
    ratio.semilogx(snr, np.log(sufficient_bound / right), ":", label="log (5.13)/exact")
    ratio.axhline(0, color="0.6", lw=0.8)
    ratio.set_xlabel("SNR")
    ratio.legend(fontsize=7)


def figure_6_1() -> tuple[plt.Figure, dict]:
    figure, axes = plt.subplots(2, 2, figsize=(9, 7))
    snr, table, model = np.geomspace(1e-2, 1e4, 60), {}, RateDistortion(ONE)
    for (panel, ratio), radius in zip(axes, (RADIUS, 30.0), strict=True):
        beta = 1 + snr
        bound = np.array([printed.corollary_1_epsilon(model, b, radius, DELTA) for b in beta])
        weak = np.array(
            [printed.theorem_5_4_1_epsilon(model.channel(b), radius, DELTA) for b in beta]
        )
        right = np.array([model.epsilon(beta=b, radius=radius, delta=DELTA) for b in beta])
        _compared(panel, ratio, snr, bound, weak, right, "(5.6)")
        panel.set(title=f"Figure 6.1, R = {radius:g} sigma", ylabel="epsilon")
        at = int(np.argmin(np.abs(snr - 100)))
        table[f"R = {radius:g}"] = {
            "snr": snr[at], "(5.6)": bound[at], "(5.13)": weak[at], "exact": right[at],
        }  # fmt: skip
    return figure, table


def figure_6_2() -> tuple[plt.Figure, dict]:
    figure, axes = plt.subplots(2, 3, figsize=(12, 7))
    snr, table = np.geomspace(1e-2, 1e4, 40), {}
    for (panel, ratio), rho in zip(axes.T, CORRELATIONS, strict=True):
        cross = np.array([[rho]])
        model = Bottleneck(ONE, cross, ONE)
        beta = (1 + snr * (1 - rho**2)) / rho**2
        bound = np.array(
            [printed.corollary_2_epsilon(ONE, cross, ONE, b, RADIUS, DELTA) for b in beta]
        )
        weak = np.array(
            [printed.theorem_5_4_1_epsilon(model.channel(b), RADIUS, DELTA) for b in beta]
        )
        right = np.array([model.epsilon(beta=b, radius=RADIUS, delta=DELTA) for b in beta])
        _compared(panel, ratio, snr, bound, weak, right, "(5.11)")
        panel.set(title=f"Figure 6.2, correlation {rho:g}", ylabel="epsilon")
        at = int(np.argmin(np.abs(snr - 100)))
        table[f"{rho:g}"] = {
            "snr": snr[at], "(5.11)": bound[at], "(5.13)": weak[at], "exact": right[at],
        }  # fmt: skip
    return figure, table


def accuracy(model: RateDistortion | Bottleneck, epsilon: float) -> float:
    """P(sign t = sign x) = 1/2 + arctan(sqrt(SNR))/pi of the channel of this (epsilon, DELTA)."""
    mu = 1 / calibrate.noise_multiplier(epsilon, DELTA)
    channel = model.channel(model.beta(mu=mu, radius=RADIUS))
    return 0.5 + math.atan(float(np.linalg.norm(channel.whitened()))) / math.pi


def figure_6_3() -> tuple[plt.Figure, dict]:
    figure, ax = plt.subplots(figsize=(6, 4))
    epsilons = np.geomspace(0.1, 100, 40)
    models = {"rate-distortion": RateDistortion(ONE)}
    for rho in CORRELATIONS:
        models[f"bottleneck, correlation {rho:g}"] = Bottleneck(ONE, [[rho]], ONE)
    curves = {}
    for (name, model), style in zip(models.items(), ("-", "--", "-.", ":"), strict=True):
        curves[name] = [accuracy(model, e) for e in epsilons.tolist()]
        ax.semilogx(epsilons, curves[name], style, lw=5 - len(curves), label=name)
    ax.set(xlabel="epsilon (delta = 1e-5, R = 3 sigma)", ylabel="accuracy of sign(x)",
           title="Figure 6.3: four curves, one line")  # fmt: skip
    ax.legend(fontsize=8)
    values = np.array(list(curves.values()))
    spread = float(np.ptp(values, axis=0).max())
    assert spread < 1e-9, "the four curves must coincide"
    at = [accuracy(models["rate-distortion"], epsilon) for epsilon in (1.0, 5.0)]
    return figure, {"largest difference": spread, "accuracy at epsilon 1 and 5": at}


FIGURES = {
    "5_1": figure_5_1,
    "5_2": figure_5_2,
    "5_3": figure_5_3,
    "6_1": figure_6_1,
    "6_2": figure_6_2,
    "6_3": figure_6_3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=tuple(FIGURES), help="one figure; the others stay")
    args = parser.parse_args()
    folder, path = args.out, args.out / "koehler_figures.json"
    numbers = json.loads(path.read_text()) if path.exists() else {}
    for name in [args.only] if args.only else FIGURES:
        figure, numbers[name] = FIGURES[name]()
        figure.tight_layout()
        figure.savefig(folder / f"koehler_{name}.png", dpi=80)
        plt.close(figure)
    path.write_text(json.dumps(numbers, indent=1) + "\n")
    print(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
