"""What a private sum, mean or count of groups hands on."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..column_names import captions, printable
from ..ellipsoid import Ellipsoid
from ..guarantee import ROW
from ..plot_groups import plot_groups
from ..present import PresentMean
from ..release import Release, finite_or_none
from ..sum_release import MISSING_CENTER, NoisySum, SumRelease
from .guarantee import GroupGuarantee
from .key_bytes import plain_key

__all__ = ["GroupRelease", "NoisyGroups", "cell_text"]

Array = NDArray[np.float64]

_PRINTED = 12
_CELLS_PRINTED = 6


def cell_text(value: float, sd: float) -> str:
    """A value with its noise, as it is printed; words where nothing is known."""
    return f"{value:.6g} ({sd:.2g})" if math.isfinite(sd) else "(no estimate)"


class NoisyGroups(NamedTuple):
    """Sums and sizes as released, a row a group. All of it is public."""

    keys: list[Any]
    regions: list[Ellipsoid] | None  #: of each group, or one for all; none for counts
    integers: NDArray[np.object_] | None  #: (groups, d), grid units; none for counts
    sum_sigma: list[float]  #: grid units, of each group, or one for all
    sizes: Array | None  #: noisy users (rows) of each group
    size_sigma: float | None
    absent: Array | None = None  #: (groups, d), noisy holes, where they are counted
    absent_sigma: list[Array] | None = None  #: cells, of each group, or one for all


class GroupRelease(Release):
    """Differentially private sums, means or counts of groups, with their noise.

    ``release[key]`` is one group's release by itself; iterating gives the keys.

    **Guarantees.** Everything in it is a function of noisy integers and public parameters, for
    all groups together: it may be published whole (claims groups-1, mechanism-2).

    Parameters
    ----------
    kind : ``"sum"``, ``"mean"`` or ``"count"``
    noisy : NoisyGroups
    guarantee : GroupGuarantee
    caveats : tuple of str
    n : float or None; users (rows) in all, where that is public
    """

    def __init__(
        self,
        kind: str,
        noisy: NoisyGroups,
        guarantee: GroupGuarantee,
        caveats: tuple[str, ...] = (),
        *,
        n: float | None = None,
    ) -> None:
        self._noisy, self._promise = noisy, guarantee
        self._edges: Array | None = None
        self._columns: tuple[str, ...] | None = None
        self._units: tuple[str | None, ...] | None = None
        self._places = {key: i for i, key in enumerate(noisy.keys)}
        what = f"group {kind}" if noisy.integers is not None else "counts"
        self._one = kind
        if noisy.integers is None:
            sizes = np.empty(0) if noisy.sizes is None else noisy.sizes
            sd = np.full(len(sizes), noisy.size_sigma or 0.0)
            super().__init__(what, sizes, guarantee, caveats, sd=sd, n=n)
            return
        parts = [self._part(i, guarantee, caveats) for i in range(len(noisy.keys))]
        d = noisy.integers.shape[1]
        value = np.array([part.value for part in parts]).reshape(-1, d)
        noise = np.array([part.sd for part in parts]).reshape(-1, d)
        super().__init__(what, value, guarantee, caveats, sd=noise, n=n)

    def _part(self, i: int, guarantee: GroupGuarantee, caveats: tuple[str, ...]) -> SumRelease:
        noisy = self._noisy
        if noisy.regions is None or noisy.integers is None:
            raise TypeError("counts have no sums: see value")
        region = noisy.regions[i if len(noisy.regions) > 1 else 0]
        sigma = noisy.sum_sigma[i if len(noisy.sum_sigma) > 1 else 0]
        size = None if noisy.sizes is None else float(noisy.sizes[i])
        names = (self._columns, self._units)
        one = NoisySum(region, noisy.integers[i], sigma, size, noisy.size_sigma)
        if noisy.absent is None or noisy.absent_sigma is None:
            return SumRelease(self._one, one, guarantee, caveats).named(*names)
        levels = noisy.absent_sigma[i if len(noisy.absent_sigma) > 1 else 0]
        return PresentMean(one, noisy.absent[i], levels, guarantee, caveats).named(*names)

    def _single(self, i: int) -> SumRelease:
        return self._part(i, self._promise, self._caveats)

    @property
    def _lists_units(self) -> bool:
        return True

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it is not private, if so, and what the values cannot say."""
        return (*self._caveats, *self._remarks())

    def _remarks(self) -> tuple[str, ...]:
        if self._noisy.integers is None:
            return ()
        if self._noisy.absent is None:
            return (MISSING_CENTER, *self._too_small())
        lost = 0 if self.sd is None else int(np.isinf(self.sd).sum())
        cells = "cells" if self._promise.unit == ROW else "cells of users"
        few = f"{lost} of {self._value.size} means have too few present {cells} for their noise: "
        return (f"{few}their value is the centre, and nothing is known of them",) if lost else ()

    def _too_small(self) -> tuple[str, ...]:
        """That some means are over sizes that do not stand out from their noise (claim count-4)."""
        sizes, sd = self._noisy.sizes, self._noisy.size_sigma
        if self._one != "mean" or sizes is None or sd is None:
            return ()
        few = int((sizes <= -scipy.special.ndtri(0.025) * sd).sum())
        units = "rows" if self._promise.unit == ROW else "users"
        text = f"{few} of {len(sizes)} groups have too few {units} for the noise of their number: "
        return (f"{text}their 95 % intervals are unbounded",) if few else ()

    @property
    def keys(self) -> list[Any]:
        """The groups, in the order of the rows of ``value``."""
        return list(self._noisy.keys)

    @property
    def edges(self) -> Array | None:
        """Of a histogram the ends of its bins, whose keys are 0, 1, and so on."""
        return self._edges

    def binned(self, edges: Array | None) -> GroupRelease:
        """Say which bins the keys stand for; return itself."""
        self._edges = edges
        return self

    def labels(self) -> list[str]:
        """Return what each group is called: its key as text, of a histogram ``[low, high)``."""
        if self._edges is None:
            return [printable(str(plain_key(key))) for key in self.keys]
        ends, last = [f"{end:.6g}" for end in self._edges], len(self._edges) - 2
        return [f"[{ends[k]}, {ends[k + 1]}{']' if k == last else ')'}" for k in self.keys]

    @property
    def sizes(self) -> Array | None:
        """Noisy number of users (of rows, without ``user=``) of each group, if released."""
        return self._noisy.sizes

    @property
    def size_sd(self) -> float | None:
        """Noise standard deviation of each of ``sizes``."""
        return self._noisy.size_sigma

    @property
    def present(self) -> Array | None:
        """Noisy number of present cells of each group and coordinate, with ``missing="ignore"``."""
        if self._noisy.absent is None or self._noisy.sizes is None:
            return None
        return np.asarray(self._noisy.sizes[:, None] - self._noisy.absent)

    @property
    def integers(self) -> NDArray[np.object_] | None:
        """The noisy integers (groups, d), grid units; None for counts."""
        return self._noisy.integers

    def __len__(self) -> int:
        return len(self._noisy.keys)

    def __iter__(self) -> Any:
        return iter(self._noisy.keys)

    def __contains__(self, key: Any) -> bool:
        return key in self._places

    def __getitem__(self, key: Any) -> Any:
        """One group's release; of counts its noisy number."""
        i = self._places[key]
        return float(self._value[i]) if self._noisy.integers is None else self._single(i)

    def confidence_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each entry of ``value``, of the added noise alone.

        Parameters
        ----------
        level : float in (0, 1), of each interval by itself

        Returns
        -------
        (lower, upper) : arrays like ``value``
        """
        if self._noisy.integers is None:
            half = -scipy.special.ndtri((1 - level) / 2) * (self._noisy.size_sigma or 0.0)
            return self._value - half, self._value + half
        ends = [self._single(i).confidence_interval(level) for i in range(len(self))]
        d = self._value.shape[1]
        lower = np.array([end[0] for end in ends]).reshape(-1, d)
        return lower, np.array([end[1] for end in ends]).reshape(-1, d)

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters of the release, as plain numbers and strings."""
        noisy = self._noisy
        own: dict[str, Any] = {"groups": len(self), "size_sigma": noisy.size_sigma}
        if noisy.regions is None:
            return own
        first = noisy.regions[0]
        one = len(noisy.regions) == 1
        shape = {"shape": first.kind, "clip_norm": first.clip_norm, "grid": first.grid}
        own |= {"d": first.d} | (shape if one else {}) | {"sum_sigma": noisy.sum_sigma}
        if noisy.absent_sigma is None:
            return own
        return own | {"missing": "ignore", "absent_sigma": [x.tolist() for x in noisy.absent_sigma]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that JSON can hold."""
        sizes = None if self.sizes is None else self.sizes.tolist()
        keys = [key.hex() if isinstance(key, bytes) else plain_key(key) for key in self.keys]
        bins = {} if self._edges is None else {"edges": self._edges.tolist()}
        present = {} if self.present is None else {"present": self.present.tolist()}
        return super().to_dict() | {"keys": keys, "sizes": sizes} | present | bins

    def table(self, level: float = 0.95) -> dict[str, Any]:
        """Return keys, values, noise and intervals as columns: a row a group and coordinate.

        Of counts a row a group; of a histogram with ``low`` and ``high``, the ends of each bin.

        Parameters
        ----------
        level : float in (0, 1), of the intervals

        Returns
        -------
        dict of lists of the same length: ``sd``, ``lower`` and ``upper`` are None where they are
        infinite, as for a group of too few users (in pandas NaN, in Arrow null)
        """
        d = 1 if self._noisy.integers is None else self._value.shape[1]
        columns: dict[str, Any] = {"key": [plain_key(key) for key in self.keys for _ in range(d)]}
        if self._edges is not None:
            ends = [(float(self._edges[k]), float(self._edges[k + 1])) for k in self.keys]
            columns |= {"low": [low for low, _ in ends], "high": [high for _, high in ends]}
        if self._noisy.integers is not None:
            columns["column"] = self.coordinates() * len(self)
            columns |= {} if self._units is None else {"unit": list(self._units) * len(self)}
        sd = np.zeros_like(self._value) if self.sd is None else self.sd
        lower, upper = self.confidence_interval(level)
        drawn = {"value": self._value, "sd": sd, "lower": lower, "upper": upper}
        columns |= {name: finite_or_none(part.ravel()) for name, part in drawn.items()}
        if self._noisy.integers is not None and self.sizes is not None:
            columns["size"] = np.repeat(self.sizes, d).tolist()
        if self.present is not None:
            columns["present"] = self.present.ravel().tolist()
        return columns

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the groups with their intervals; return the matplotlib axes (extra ``plot``).

        Parameters
        ----------
        ax : matplotlib axes, optional
        **options : ``column``, ``level``, ``sort`` of ``ellipsum.plot_groups``

        Raises
        ------
        ImportError
            Where matplotlib is not installed.
        """
        return plot_groups(self, ax=ax, **options)

    def _head(self) -> list[str]:
        lines = [*super()._head(), *(f"  {remark}" for remark in self._remarks())]
        if self._promise.unit != ROW:
            k = self._promise.max_keys
            lines.append(f"  max_keys = {k}: a user counts in {k} group{'s' * (k > 1)} at most")
        return lines

    def _title(self) -> str:
        return f"{self._kind}, {len(self)} group{'s' * (len(self) != 1)}"

    def _rows(self) -> list[str]:
        """Values of the first groups, a line each."""
        shown = min(len(self), _PRINTED)
        names = self.labels()[:shown]
        width = max([len(name) for name in names] + [len("group")])
        what = "rows (noisy)" if self._promise.unit == ROW else "users (noisy)"
        called = ["value"] if self._columns is self._units is None else self.coordinates()
        values = captions(called, self._units)[:_CELLS_PRINTED]
        heading = "" if self._noisy.integers is None else f"  {', '.join(values)} (noise sd)"
        lines = [f"  {'group':{width}}  {'' if self.sizes is None else what:>13}{heading}"]
        for i in range(shown):
            size = "" if self.sizes is None else f"{self.sizes[i]:.6g}"
            lines.append(f"  {names[i]:{width}}  {size:>13}  {self._cells(i)}".rstrip())
        if shown < len(self):
            lines.append(f"  ... and {len(self) - shown} more groups")
        return lines

    def _cells(self, i: int) -> str:
        """The first values of a group, each with its noise."""
        if self._noisy.integers is None or self.sd is None:
            return ""
        pairs = list(zip(self._value[i], self.sd[i], strict=True))
        cells = " ".join(cell_text(value, sd) for value, sd in pairs[:_CELLS_PRINTED])
        return cells + " ..." * (len(pairs) > _CELLS_PRINTED)
