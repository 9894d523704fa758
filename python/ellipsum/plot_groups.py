"""Pictures of releases of groups, with matplotlib (an extra): a panel a coordinate."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .plot import BLUE, check_matplotlib, drawn_ends, shown_unit, stripe

__all__ = ["DrawableGroups", "plot_groups"]

_NAMED_GROUPS = 45  # more do not fit as lines of text
_PANELS = 4  # coordinates side by side


class DrawableGroups(Protocol):
    """What of a release of groups a picture shows."""

    @property
    def kind(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def edges(self) -> Any: ...
    @property
    def private(self) -> bool: ...
    @property
    def units(self) -> Any: ...
    def labels(self) -> list[str]: ...
    def coordinates(self) -> list[str]: ...
    def confidence_interval(self, level: float = 0.95) -> tuple[Any, Any]: ...


def plot_groups(
    release: DrawableGroups,
    ax: Any = None,
    *,
    column: str | int | None = None,
    level: float = 0.95,
    sort: bool | None = None,
) -> Any:
    """Draw the groups' values with their noise intervals.

    Parameters
    ----------
    release : GroupRelease
    ax : matplotlib.axes.Axes, optional
        Where to draw, one coordinate; a new figure of pyplot if left out.
    column : str or int, optional
        Which coordinate; the first four, a panel each, if left out.
    level : float
        Of the intervals, which count the added noise alone.
    sort : bool, optional
        Whether to sort by value; by default for more than 45 groups, which have no names then.

    Returns
    -------
    matplotlib.axes.Axes, or an array of them for several panels

    Raises
    ------
    ImportError
        matplotlib is missing.
    ValueError
        There is no group, or no such coordinate.
    """
    check_matplotlib()
    labels = release.labels()
    if not labels:
        raise ValueError("no group was released: there is nothing to draw")
    lower, upper = release.confidence_interval(level)
    ends = [np.asarray(x).reshape(len(labels), -1) for x in (release.value, lower, upper)]
    names = release.coordinates() if ends[0].shape[1] > 1 else [""]
    chosen = _chosen(names, column, alone=ax is not None)
    axes = _new_axes(len(chosen), len(labels), release.edges is not None) if ax is None else [ax]
    for j, axis in zip(chosen, axes, strict=True):
        own = [part[:, j] for part in ends]
        if release.edges is not None:
            _draw_bins(axis, np.asarray(release.edges), *own)
        else:
            many = len(labels) > _NAMED_GROUPS
            _draw_groups(axis, labels, *own, sort=many if sort is None else sort)
        if release.value.ndim > 1:
            axis.set_xlabel(_caption(names[j], (release.units or {j: None})[j]))
        elif release.edges is None:
            axis.set_xlabel("number")
        if len(axes) > 1:
            axis.locator_params(axis="x", nbins=4)  # of six digits more do not fit
        axis.spines[["top", "right"]].set_visible(False)
    title = f"Private {release.kind}" if release.private else release.kind.capitalize()
    caveat = "" if release.private else " (NOT PRIVATE)"
    axes[0].set_title(f"{title}, {100 * level:g} % intervals of the noise{caveat}", loc="left")
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


def _caption(name: str, unit: str | None) -> str:
    """What the axis of a coordinate is called."""
    if unit:
        return f"{name or 'value'}, {shown_unit(unit)}"
    return f"{name}, in its unit" if name else "value, in the data's unit"


def _chosen(names: list[str], column: str | int | None, *, alone: bool) -> list[int]:
    """The coordinates that are drawn."""
    if column is None:
        if alone and len(names) > 1:
            raise ValueError("one axes shows one coordinate: say which by column=")
        return list(range(min(len(names), _PANELS)))
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"column must be one of the release's, got {column!r}")
        return [names.index(column)]
    if not 0 <= column < len(names):
        raise ValueError(f"column must lie from 0 to {len(names) - 1}, got {column}")
    return [column]


def _new_axes(panels: int, groups: int, bins: bool) -> list[Any]:
    from matplotlib import pyplot

    lines = 16 if bins or groups > _NAMED_GROUPS else max(groups, 4)
    size = (7.2 if panels == 1 else min(3.4 * panels + 0.8, 14.0), 1.2 + 0.25 * lines)
    return list(pyplot.subplots(1, panels, sharey=True, squeeze=False, figsize=size,
                                layout="constrained")[1][0])  # fmt: skip


def _draw_groups(
    ax: Any, labels: list[str], value: Any, lower: Any, upper: Any, *, sort: bool
) -> None:
    """A line a group; a dot, and the interval behind it."""
    order = np.argsort(-value, kind="stable") if sort else np.arange(len(labels))
    at = np.arange(len(labels))[::-1]
    few = len(labels) <= _NAMED_GROUPS
    if few:
        stripe(ax, len(labels))
    ends = drawn_ends(ax.set_xlim, value, lower, upper)
    ax.hlines(at, *(end[order] for end in ends), color=BLUE, lw=2.2 if few else 0.6, alpha=0.35)
    ax.plot(value[order], at, "o", ms=4.6 if few else 1.5, color=BLUE)
    if few:
        ax.set_yticks(at, [labels[i] for i in order])
    else:
        ax.set_yticks([])
        ax.set_ylabel(f"{len(labels)} groups, the largest on top" if sort else "groups")
    ax.set_xlabel("value, in the data's unit")


def _draw_bins(ax: Any, edges: Any, value: Any, lower: Any, upper: Any) -> None:
    """A bar over each bin, as wide as the bin, and its interval."""
    width, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    ax.bar(edges[:-1], value, width=width, align="edge", color=BLUE, alpha=0.3, edgecolor="white")
    ax.vlines(middle, lower, upper, color=BLUE, lw=1.6)
    ax.plot(middle, value, "o", ms=3.5, color=BLUE)
    ax.axhline(0, color="#77808c", lw=0.6)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel("bins")
    ax.set_ylabel("number in each bin")
