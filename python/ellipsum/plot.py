"""Pictures of releases, with matplotlib (an extra)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .demo import Demo
    from .release import Release

__all__ = ["check_matplotlib", "plot_release", "save_demo"]

_BLUE, _ORANGE, _GREEN = "#1d5fbf", "#d9730d", "#2f8f5b"
_INK, _GREY, _STRIPE = "#22272e", "#77808c", "#f3f5f8"
_NAMED_COORDINATES = 45  # more do not fit as lines of text
_TITLE: dict[str, Any] = {"fontsize": 11.5, "fontweight": "bold"}
_SPREAD = 50  # a largest value so many times the median would flatten the others
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


def check_matplotlib() -> None:
    """Raise an ImportError that says how to get matplotlib, unless it is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'ellipsum[plot]'") from None


def plot_release(
    release: Release,
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    sort: bool = True,
) -> Any:
    """Draw the values with their noise intervals, largest first.

    Parameters
    ----------
    release : Release
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure of pyplot if left out.
    names : sequence of str, optional
        Of the d coordinates; their numbers if left out.
    level : float
        Of the intervals, which count the added noise alone.
    sort : bool
        Whether to sort by value; in the order of the columns if not.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is missing.
    """
    check_matplotlib()
    value = release.value
    labels = [f"[{j}]" for j in range(value.size)] if names is None else list(names)
    if len(labels) != value.size:
        raise ValueError(f"names must have {value.size} entries, got {len(labels)}")
    order = np.argsort(-value, kind="stable") if sort else np.arange(value.size)
    lower, upper = release.confidence_interval(level)
    few = value.size <= _NAMED_COORDINATES
    if ax is None:
        ax = _new_axes(value.size if few else None)
    draw = _draw_lines if few else _draw_band
    draw(ax, value[order], lower[order], upper[order], [labels[j] for j in order])
    _spread_axis(ax, "x" if few else "y", value, release.sd)
    ax.spines[["top", "right"]].set_visible(False)
    caveat = "" if release.private else " (NOT PRIVATE)"
    ax.set_title(
        f"Private {release.kind}, {100 * level:g} % intervals of the noise{caveat}", loc="left"
    )
    return ax


def save_demo(demo: Demo, path: str) -> None:
    """Write the demo's picture: the release beside the truth, and the noise of three shapes."""
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    release = demo.release
    order = np.argsort((demo.truth - demo.center) / demo.sigma)
    with rc_context(_STYLE):
        layout = ConstrainedLayoutEngine(wspace=0.04, h_pad=0.08)
        figure = Figure(figsize=(8.6, 7.1), dpi=110, layout=layout)
        figure.suptitle(
            f"Private mean of {release.n} patients: {order.size} features at once, "
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
    _stripe(ax, order.size)
    ax.axvline(0, color=_GREY, lw=1, ls=(0, (4, 3)), zorder=1)
    ax.hlines(at, lower, upper, color=_BLUE, lw=2.4, alpha=0.3, zorder=2)
    ax.plot(demo.release.value[order], at, "o", ms=4.8, color=_BLUE, label="private", zorder=3)
    ax.plot(truth, at, "o", ms=6.4, mfc="none", mec=_INK, mew=1.1, label="non-private", zorder=4)
    ax.plot([], [], color=_BLUE, lw=2.4, alpha=0.3, label="95 % interval")
    ax.set_yticks(at, [demo.names[j] for j in order])
    ax.set_xlabel("standard deviations from the public mean")
    _legend(ax)


def _draw_noise(ax: Any, demo: Demo, order: Any) -> None:
    """Points on a linear axis; noise that is off the scale is a number at its right edge."""
    at = np.arange(order.size)
    edge = 1.45 * sorted(float(noise.max()) for noise in demo.noise.values())[1]
    _stripe(ax, order.size)
    for (shape, noise), color in zip(demo.noise.items(), (_ORANGE, _GREEN, _BLUE), strict=True):
        inside = noise[order] < edge
        ax.plot(noise[order][inside], at[inside], "o", ms=4.8, color=color, label=shape, zorder=3)
        for j in at[~inside]:
            size = noise[order[j]]
            text = f"{size:,.0f} →" if size >= 10 else f"{size:.1f} →"
            ax.text(edge, j, text, color=color, ha="right", va="center", fontsize=8)
    ax.set_xlim(0, edge)
    ax.set_xlabel("noise in three shapes, standard deviations")
    _legend(ax)


def _power(x: float) -> str:
    """1e-06 as 10⁻⁶, for the eye."""
    mantissa, exponent = f"{x:g}".split("e") if "e" in f"{x:g}" else ("", "")
    if mantissa != "1":
        return f"{x:g}"
    return "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _stripe(ax: Any, count: int) -> None:
    for j in range(0, count, 2):
        ax.axhspan(j - 0.5, j + 0.5, color=_STRIPE, lw=0, zorder=0)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.5, count - 0.5)
    ax.spines["left"].set_visible(False)


def _legend(ax: Any) -> None:
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.005),
        ncols=3,
        borderaxespad=0.1,
        handlelength=1.2,
        handletextpad=0.3,
        columnspacing=1.2,
    )


def _new_axes(lines: int | None) -> Any:
    from matplotlib import pyplot

    height = 4.0 if lines is None else 1.1 + 0.23 * max(lines, 4)
    return pyplot.subplots(figsize=(7.2, height), layout="constrained")[1]


def _draw_lines(ax: Any, value: Any, lower: Any, upper: Any, labels: list[str]) -> None:
    at = np.arange(value.size)[::-1]
    _stripe(ax, value.size)
    ax.hlines(at, *_finite(value, lower, upper), color=_BLUE, lw=2.2, alpha=0.35)
    ax.plot(value, at, "o", ms=4.6, color=_BLUE)
    ax.set_yticks(at, labels)
    ax.set_xlabel("value, in the data's unit")


def _draw_band(ax: Any, value: Any, lower: Any, upper: Any, _labels: list[str]) -> None:
    at = np.arange(value.size)
    ax.fill_between(at, *_finite(value, lower, upper), color=_BLUE, alpha=0.25, lw=0)
    ax.plot(at, value, ".", ms=3, color=_BLUE)
    ax.set_xlim(-1, value.size)
    ax.set_xlabel(f"the {value.size} coordinates")
    ax.set_ylabel("value, in the data's unit")


def _finite(value: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Ends that can be drawn: an unbounded interval reaches past every value."""
    reach = 10 * (np.ptp(value) + np.abs(value).max() + 1)
    return np.maximum(lower, value - reach), np.minimum(upper, value + reach)


def _spread_axis(ax: Any, which: str, value: Any, sd: Any) -> None:
    """A logarithmic axis, linear within the noise, where most values are far below the largest."""
    size, floor = np.abs(value), float(np.median(sd))
    if floor > 0 and size.max() > _SPREAD * max(float(np.median(size)), floor):
        getattr(ax, f"set_{which}scale")("symlog", linthresh=4 * floor)
        ax.autoscale(axis=which)
