"""The demo's picture: a release beside the truth, and what the shape of its noise buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..plot import BLUE, check_matplotlib, legend, stripe
from ..release import titled
from ..sum_release import SumRelease

__all__ = ["Demo", "save_demo"]

Array = NDArray[np.float64]

_ORANGE, _GREEN, _INK, _GREY = "#d9730d", "#2f8f5b", "#22272e", "#77808c"
_TITLE: dict[str, Any] = {"fontsize": 11.5, "fontweight": "bold"}
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": "#c4cad2",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.direction": "out",
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Demo:
    """The release beside what it is held against; all arrays (d,).

    ``release`` is in units of the public standard deviation from the public mean: ``value``
    and ``sd`` are turned back into the table's own units.
    """

    names: list[str]
    center: Array  #: public mean
    sigma: Array  #: public standard deviation
    truth: Array  #: non-private mean of the private half
    release: SumRelease
    noise: dict[str, Array]  #: shape -> noise sd of the mean, public standard deviations

    @property
    def value(self) -> Array:
        """The private mean, in the table's units."""
        return self.center + self.sigma * self.release.value

    @property
    def sd(self) -> Array:
        """Its noise standard deviation, in the table's units."""
        return self.sigma * self.release.sd


def save_demo(demo: Demo, path: str) -> None:
    """Write the demo's picture: the release beside the truth, and the noise of three shapes."""
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    release = demo.release
    order = np.argsort((demo.truth - demo.center) / demo.sigma)
    what = titled(f"mean of {release.n} patients", private=release.private)
    with rc_context(_STYLE):
        layout = ConstrainedLayoutEngine(wspace=0.04, h_pad=0.08)
        figure = Figure(figsize=(8.6, 7.1), dpi=110, layout=layout)
        figure.suptitle(
            f"{what[0].upper()}{what[1:]}: {order.size} features at once, "
            f"ε = {release.epsilon:g}, δ = {_power(release.delta or 0)}",
            **_TITLE,
        )
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.25, 1))
        _draw_release(left, demo, order)
        _draw_noise(right, demo, order)
        figure.savefig(path)


def _draw_release(ax: Any, demo: Demo, order: Any) -> None:
    at = np.arange(order.size)
    truth = ((demo.truth - demo.center) / demo.sigma)[order]
    lower, upper = (end[order] for end in demo.release.confidence_interval())
    stripe(ax, order.size)
    ax.axvline(0, color=_GREY, lw=1, ls=(0, (4, 3)), zorder=1)
    ax.hlines(at, lower, upper, color=BLUE, lw=2.4, alpha=0.3, zorder=2)
    name = "private" if demo.release.private else "released"
    ax.plot(demo.release.value[order], at, "o", ms=4.8, color=BLUE, label=name, zorder=3)
    ax.plot(truth, at, "o", ms=6.4, mfc="none", mec=_INK, mew=1.1, label="non-private", zorder=4)
    ax.plot([], [], color=BLUE, lw=2.4, alpha=0.3, label="95 % interval")
    ax.set_yticks(at, [demo.names[j] for j in order])
    ax.set_xlabel("standard deviations from the public mean")
    legend(ax)


def _draw_noise(ax: Any, demo: Demo, order: Any) -> None:
    """Points on a linear axis; noise that is off the scale is a number at its right edge."""
    at = np.arange(order.size)
    edge = 1.45 * sorted(float(noise.max()) for noise in demo.noise.values())[1]
    stripe(ax, order.size)
    for (shape, noise), color in zip(demo.noise.items(), (_ORANGE, _GREEN, BLUE), strict=True):
        inside = noise[order] < edge
        ax.plot(noise[order][inside], at[inside], "o", ms=4.8, color=color, label=shape, zorder=3)
        for j in at[~inside]:
            size = noise[order[j]]
            text = f"{size:,.0f} →" if size >= 10 else f"{size:.1f} →"
            ax.text(edge, j, text, color=color, ha="right", va="center", fontsize=8)
    ax.set_xlim(0, edge)
    ax.set_xlabel("noise in three shapes, standard deviations")
    legend(ax)


def _power(x: float) -> str:
    """1e-06 as 10⁻⁶, for the eye."""
    mantissa, exponent = f"{x:g}".split("e") if "e" in f"{x:g}" else ("", "")
    if mantissa != "1":
        return f"{x:g}"
    return "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
