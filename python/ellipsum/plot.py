"""Pictures of releases, with matplotlib (an extra)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .column_names import printable

__all__ = [
    "BLUE",
    "Drawable",
    "axis_unit",
    "check_matplotlib",
    "drawn_ends",
    "legend",
    "plot_release",
    "shown_unit",
    "stripe",
]

BLUE = "#1d5fbf"
_STRIPE = "#f3f5f8"
_NAMED_COORDINATES = 45  # more do not fit as lines of text
_SPREAD = 50  # a largest value so many times the median would flatten the others


class Drawable(Protocol):
    """What of a release a picture shows."""

    @property
    def kind(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def sd(self) -> Any: ...
    @property
    def private(self) -> bool: ...
    @property
    def covers(self) -> str: ...
    @property
    def units(self) -> Any: ...
    def coordinates(self) -> list[str]: ...
    def confidence_interval(self, level: float = 0.95) -> tuple[Any, Any]: ...


def check_matplotlib() -> None:
    """Raise an ImportError that says how to get matplotlib, unless it is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None


def plot_release(
    release: Drawable,
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
        Of the d coordinates; their columns' names, or their places, if left out.
    level : float
        Of the intervals, which cover what ``confidence_interval`` covers by itself.
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
    common, each = axis_unit(release.units)
    labels = release.coordinates() if names is None else list(names)
    if len(labels) != value.size:
        raise ValueError(f"names must have {value.size} entries, got {len(labels)}")
    if names is None and each:
        labels = [f"{x} [{shown_unit(u)}]" if u else x for x, u in zip(labels, each, strict=True)]
    order = np.argsort(-value, kind="stable") if sort else np.arange(value.size)
    lower, upper = release.confidence_interval(level)
    few = value.size <= _NAMED_COORDINATES
    if ax is None:
        ax = _new_axes(value.size if few else None)
    draw = _draw_lines if few else _draw_band
    draw(ax, value[order], lower[order], upper[order], [labels[j] for j in order], common)
    _spread_axis(ax, "x" if few else "y", value, release.sd)
    ax.spines[["top", "right"]].set_visible(False)
    title = f"Private {release.kind}" if release.private else release.kind.capitalize()
    caveat = "" if release.private else " (NOT PRIVATE)"
    ax.set_title(
        f"{title}, {100 * level:g} % intervals of {release.covers}{caveat}",
        loc="left",
    )
    return ax


def axis_unit(units: Sequence[str | None] | None) -> tuple[str, Sequence[str | None]]:
    """What an axis of values is called, and the units that stand at each coordinate instead."""
    if not units:
        return "value, in the data's unit", ()
    if len(set(units)) == 1:
        return f"value, {shown_unit(units[0] or '')}", ()
    return "value, each in its unit", units


def shown_unit(unit: str) -> str:
    """A unit as a label: short, without control characters, and without formulas."""
    return printable(unit).replace("$", r"\$")


def stripe(ax: Any, count: int) -> None:
    """Shade every other line of ``count``."""
    for j in range(0, count, 2):
        ax.axhspan(j - 0.5, j + 0.5, color=_STRIPE, lw=0, zorder=0)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.5, count - 0.5)
    ax.spines["left"].set_visible(False)


def legend(ax: Any) -> None:
    """One line of entries above the axes."""
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


def _draw_lines(ax: Any, value: Any, lower: Any, upper: Any, labels: list[str], axis: str) -> None:
    at = np.arange(value.size)[::-1]
    stripe(ax, value.size)
    ax.hlines(at, *drawn_ends(ax.set_xlim, value, lower, upper), color=BLUE, lw=2.2, alpha=0.35)
    ax.plot(value, at, "o", ms=4.6, color=BLUE)
    ax.set_yticks(at, labels)
    ax.set_xlabel(axis)


def _draw_band(ax: Any, value: Any, lower: Any, upper: Any, _labels: list[str], axis: str) -> None:
    at = np.arange(value.size)
    ends = drawn_ends(ax.set_ylim, value, lower, upper)
    ax.fill_between(at, *ends, color=BLUE, alpha=0.25, lw=0)
    ax.plot(at, value, ".", ms=3, color=BLUE)
    ax.set_xlim(-1, value.size)
    ax.set_xlabel(f"the {value.size} coordinates")
    ax.set_ylabel(axis)


def drawn_ends(limit: Any, value: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Ends that can be drawn: an unbounded interval leaves the axes, whose limits (``limit`` sets
    them) are those of all that is finite."""
    ends = np.concatenate([value, lower, upper])
    known = ends[np.isfinite(ends)]
    if len(known) == len(ends) or not len(known):
        return lower, upper
    span = float(np.ptp(known)) or abs(float(known[0])) or 1.0
    low, high = known.min() - 0.1 * span, known.max() + 0.1 * span
    limit(low, high)
    return np.maximum(lower, low - span), np.minimum(upper, high + span)


def _spread_axis(ax: Any, which: str, value: Any, sd: Any) -> None:
    """A logarithmic axis, linear within the noise, where most values are far below the largest."""
    size, floor = np.abs(value), float(np.median(sd))
    if floor > 0 and size.max() > _SPREAD * max(float(np.median(size)), floor):
        getattr(ax, f"set_{which}scale")("symlog", linthresh=4 * floor)
        ax.autoscale(axis=which)
